"""How small an error the default run sees: each mutant in a process of its own, against the claims on its path.

A claim is tried as the default run tries it: quick profile, seed 0, each form at the level that it has among all forms
of that run, nothing taken from earlier runs by name. A mutant is caught where a verdict is not the expected one, a
control is not refuted, or anything is raised. `paths.json` says which claims execute what the mutants change, and how
long each took.
"""

import functools
import gc
import json
import math
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent import futures
from importlib import resources
from pathlib import Path
from typing import Any

import jax

from proofs_check import register
from proofs_check.engine import files
from proofs_check.engine.draws import QUICK
from proofs_check.engine.result import ClaimResult
from proofs_check.engine.work import FAMILY_ALPHA, Options, Work, share
from proofs_check.studies import pins
from proofs_check.studies.mutants import Mutant, mutants, put, resolve, wrong_one

RESULTS = "power.jsonl"
PATHS = Path(str(resources.files("proofs_check.studies").joinpath("paths.json")))
TIMEOUT = 300


def default_claims() -> list[str]:
    """Return the ids of the claims that a run executes by default."""
    return [claim.id for claim in register.outlines() if not claim.marginal]


def level() -> float:
    """Return the error rate of each form of the default run."""
    return share(register.claims(only=default_claims()), FAMILY_ALPHA)


def run_alone(name: str, alpha: float) -> ClaimResult:
    """Run one claim as the default run does, each of its forms at the level `alpha`."""
    (claim,) = register.claims(only={name})
    work = Work(claim, Options(profile=QUICK, seed=0), alpha, lambda: False)
    work.advance()
    return work.result()


def record() -> None:
    """Write down for each claim of the default run which targets it executes, whether it is fine, and its seconds."""
    alpha, seen, lines = level(), set[str](), []
    by_target = {
        mutant.target: mutant
        for mutant in sorted(mutants(), key=lambda mutant: mutant.local)
    }
    for target, mutant in by_target.items():
        right = getattr(*resolve(target))
        put(mutant, _noticed(right, target, seen))
    for name in default_claims():
        _forget()
        seen.clear()
        start = time.process_time()
        fine, seconds = (
            run_alone(name, alpha).as_expected,
            round(time.process_time() - start, 2),
        )
        lines.append(
            json.dumps(
                {
                    name: {
                        "as_expected": fine,
                        "seconds": seconds,
                        "targets": sorted(seen),
                    }
                }
            )[1:-1]
        )
    files.write(PATHS, "{\n" + ",\n".join(lines) + "\n}\n")


def _noticed(right: Any, target: str, seen: set[str]) -> Any:
    return functools.wraps(right)(
        lambda *args, **given: (seen.add(target), right(*args, **given))[1]
    )


def _forget() -> None:
    """Forget what was traced or computed, so that it is executed again."""
    jax.clear_caches()
    for cached in gc.get_objects():
        if isinstance(
            cached, functools._lru_cache_wrapper
        ) and cached.__module__.startswith(("jaxkern", "proofs")):
            cached.cache_clear()


def path_of(mutant: Mutant) -> list[str]:
    """Return the claims that execute what a mutant changes and are as expected without it, the cheapest first."""
    paths: Mapping[str, Any] = json.loads(PATHS.read_text(encoding="utf-8"))
    if set(paths) != set(default_claims()):
        raise ValueError(
            "the default run has changed; record its paths anew: python -m proofs_check.studies paths"
        )
    there = [
        name
        for name, path in paths.items()
        if path["as_expected"] and mutant.target in path["targets"]
    ]
    return sorted(there, key=lambda name: paths[name]["seconds"])


def trial(label: str, alpha: float, *, every: bool = False) -> dict[str, Any]:
    """Plant a mutant in this process; return which claims catch it, the first one or `every` one, and whether pins do.

    `slack` is the smallest of the forms that should hold.
    """
    (mutant,) = (each for each in mutants() if each.label == label)
    claims, caught, slack = path_of(mutant), {}, math.inf
    put(mutant, wrong_one(mutant))
    for name in claims:
        try:
            result = run_alone(name, alpha)
        except Exception as error:
            caught[name] = f"{type(error).__name__}: {error}"[:200]
        else:
            held = [
                verdict.slack
                for _, form, verdict in result.forms
                if form.expect != "refuted"
            ]
            slack = min([slack, *(each for each in held if each == each)])
            if not result.as_expected:
                caught[name] = "; ".join([*result.unexpected, *result.notes])[:200]
        if caught and not every:
            break
    return {
        "mutant": label,
        "claims": len(claims),
        "caught": caught,
        "slack": slack,
        "pins": pins.wrong(mutant),
    }


def measured(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of a folder, by mutant; what failed is not one."""
    path = folder / RESULTS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {
        line["mutant"]: line for line in map(json.loads, lines) if "failed" not in line
    }


def measure(
    folder: Path, *, workers: int, only: Collection[str], every: bool
) -> Iterator[dict[str, Any]]:
    """Try all mutants, or those whose names begin as one of `only`, that the folder has no result of; yield results."""
    there, alpha = measured(folder), level()

    def one(label: str) -> dict[str, Any]:
        command, start = (
            [sys.executable, "-m", "proofs_check.studies", "trial", label, repr(alpha)],
            time.monotonic(),
        )
        try:
            done = subprocess.run(
                command + ["--all"] * every,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
            found = json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            found = {"mutant": label, "failed": f"no end within {TIMEOUT} s"}
        except (IndexError, ValueError):
            found = {"mutant": label, "failed": done.stderr[-2000:]}
        return found | {"seconds": round(time.monotonic() - start, 1)}

    labels = [
        m.label
        for m in mutants()
        if m.label not in there and (not only or m.label.startswith(tuple(only)))
    ]
    with (
        futures.ThreadPoolExecutor(workers) as pool,
        (folder / RESULTS).open("a", encoding="utf-8") as file,
    ):
        for found in pool.map(one, labels):
            print(json.dumps(found), file=file, flush=True)
            yield found

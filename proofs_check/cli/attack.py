"""`python -m proofs_check attack`: the adversary of `proofs_check.engine.adversary` on the targets of the papers."""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from proofs_check.cli import own
from proofs_check.engine import files
from proofs_check.engine.adversary import Attack, Target, attack, named
from proofs_check.papers import targets
from proofs_check.usage import UsageError

EXAMPLES = """examples:
  python -m proofs_check attack ghashami2016:lem3.5                    both forms, as printed and as corrected
  python -m proofs_check attack chen2016:lem4.1 --form printed         one form
  python -m proofs_check attack ghashami2016:lem3.2 --restarts 128 --steps 1000 --seed 7
  python -m proofs_check attack ghashami2016:thm3.1 --json found.json  the worst case found, as numbers
  python -m proofs_check attack --claims mine.py mine:squares          an inequality of your own

exit status: 0 a violation was found where the claim is expected to be refuted, and none elsewhere, or nothing is
expected, as of your own claims without expect=; 1 otherwise; 2 bad usage, 3 a file cannot be written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `attack` to its parser, with a description and examples."""
    parser.description = (
        "Search the worst case of a claim by gradient ascent from random starts, within its hypotheses,\n"
        "and evaluate what is found again on fresh randomness. Without CLAIM, list the claims that can be attacked."
    )
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "claim",
        metavar="CLAIM",
        nargs="?",
        help="the id of a claim, such as ghashami2016:lem3.5",
    )
    parser.add_argument(
        "--claims",
        metavar="FILE",
        action="append",
        default=[],
        help="those of your own Python file",
    )
    parser.add_argument(
        "--form",
        choices=("printed", "corrected", "both"),
        default="both",
        help="which form (default: both)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="INT",
        help="a whole number from 0 on (default: 0)",
    )
    parser.add_argument(
        "--restarts",
        type=int,
        default=32,
        metavar="INT",
        help="random starts (default: 32)",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=300,
        metavar="INT",
        help="steps of each (default: 300)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write what was found into a new file"
    )


def command(options: argparse.Namespace) -> int:
    """Attack the forms of a claim, print what was found, and return 0 if it is what the claim expects, else 1.

    Runs in float64. Raises UsageError, in one line, where the options cannot be followed.
    """
    for name, least in (("seed", 0), ("restarts", 1), ("steps", 1)):
        if getattr(options, name) < least:
            raise UsageError(
                f"--{name} must be at least {least}, got {getattr(options, name)}"
            )
    if options.json is not None and options.json.exists():
        raise UsageError(f"--json {options.json} exists; choose a new file")
    if options.json is not None and not options.json.parent.is_dir():
        raise UsageError(f"--json {options.json} is in no folder; make it first")
    with jax.enable_x64(True), own.blamed(options.claims):
        claims = own.claims_of(options.claims) if options.claims else []
        known = (
            [claim.target for claim in claims if claim.target is not None]
            if claims
            else targets.targets()
        )
        if options.claim is None:
            _list(known)
            return 0
        chosen = _choose(known, options.claim, options.form)
        told = {claim.id: claim.printed.expect for claim in claims}
        expected = {
            target.form: told[target.claim] if claims else _expected(target)
            for target in chosen
        }
        attacks = []
        for target in chosen:
            attacked = attack(
                target,
                seed=options.seed,
                restarts=options.restarts,
                steps=options.steps,
            )
            _print(attacked, expected[target.form])
            attacks.append(attacked)
    if options.json is not None:
        described = [as_json(attacked, expected[attacked.form]) for attacked in attacks]
        files.write(
            options.json, json.dumps(described, indent=1, allow_nan=False) + "\n"
        )
    return (
        0
        if all(_as_expected(attacked, expected[attacked.form]) for attacked in attacks)
        else 1
    )


def _as_expected(attacked: Attack, expected: str) -> bool:
    return not expected or attacked.found == (expected == "refuted")


def as_json(attacked: Attack, expected: str) -> dict[str, Any]:
    """Return an attack as what JSON can hold; a number that is not finite becomes None."""
    verdict = attacked.verdict
    return {
        "claim": attacked.claim,
        "form": attacked.form,
        "expected": expected,
        "found": attacked.found,
        "as_expected": _as_expected(attacked, expected),
        "excess": _number(attacked.excess),
        "verdict": None
        if verdict is None
        else {"status": verdict.status, "because": verdict.because},
        "rechecked": [v.status for v in attacked.rechecked],
        "params": _numbers(attacked.params),
        "simplest": _numbers(attacked.simplest),
        "member": attacked.member,
        "best": _number(attacked.best),
        **{
            name: getattr(attacked, name)
            for name in ("restarts", "steps", "failures", "seed", "alpha")
        },
    }


def _numbers(params: Any) -> dict[str, Any]:
    return {name: _number(np.asarray(leaf)) for name, leaf in named(params)}


def _number(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _number(value.tolist())
    if isinstance(value, list):
        return [_number(v) for v in value]
    return value if isinstance(value, int) or math.isfinite(value) else None


def _choose(known: Sequence[Target], claim: str, form: str) -> list[Target]:
    """Return the targets of a claim. Raises UsageError where there is none."""
    of_claim = [target for target in known if target.claim == claim]
    if not of_claim:
        ids = sorted({target.claim for target in known})
        raise UsageError(
            f"no attack on {claim!r}; there are attacks on {', '.join(ids) or 'nothing'}"
        )
    chosen = [target for target in of_claim if form in ("both", target.form)]
    if not chosen:
        raise UsageError(
            f"{claim} has no attack on the form as {form}; leave --form out"
        )
    return chosen


def _expected(target: Target) -> str:
    """Return the verdict that the claim of a target expects of the form."""
    return targets.registered(target.claim, target.form).expect


def _list(known: Sequence[Target]) -> None:
    width = max((len(target.claim) for target in known), default=0)
    for target in known:
        print(f"{target.claim.ljust(width)}  {target.form.ljust(9)}  {target.moves}")


def _print(attacked: Attack, expected: str) -> None:
    first, *others = str(attacked).splitlines()
    told = f" (expected {expected})" if expected else ""
    differs = "" if _as_expected(attacked, expected) else ", which is not as expected"
    found = first.removeprefix(attacked.name)
    print("\n".join([f"{attacked.name}{told}{found}{differs}", *others]))

"""Check the accelerator that is there, and write one report to commit: `python -m benchmarks.device --help`."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _machine
from benchmarks._report import seconds

DESCRIPTION = """Run on the accelerator that JAX finds, one after the other and each in a process of its own:

tests       what hypothesis draws for the tests of jaxkern
accuracy    the budget of docs/float32.md
claims      a claim of each kind of statement by proofs_check, in single precision
benchmarks  benchmarks.gpu

and write one report as Markdown. Without an accelerator all this runs on the CPU, with tiny benchmarks, and the report
says so. Exit status: 0, or 1 where a part failed."""

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = """kpotufe2020:normalisation kpotufe2020:prop1 kpotufe2020:eq1 kpotufe2020:propB.1 kpotufe2020:thm3
kpotufe2020:thm2-text kpotufe2020:no-identity kpotufe2020:remark ghashami2016:nystrom-frobenius ghashami2016:reservoir
jaxkern:relative-distances-given-rare amini2021:lem6"""


def describe() -> None:
    """Print the device and the versions, for a process that must not hold the device: a TPU serves one at a time."""
    import jax

    device = jax.devices()[0]
    found = {
        "kind": device.device_kind,
        "platform": device.platform,
        "count": jax.device_count(),
    }
    print(json.dumps(_machine.describe() | found | {"jax_platforms": named(device)}))


def named(device: Any) -> str:
    """Return what JAX_PLATFORMS calls the platform of a device."""
    if device.platform != "gpu":
        return device.platform
    return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"


def commands(platform: str) -> dict[str, list[str]]:
    """Return the parts: modules of Python with their arguments."""
    claims = [word for claim in CLAIMS.split() for word in ("--claim", claim)]
    return {
        "tests": ["pytest", "-q", "-m", "hypothesis and not slow", "tests/jaxkern"],
        "accuracy": ["pytest", "-q", "tests/tools/test_float32_budget.py"],
        "claims": ["proofs_check", "--dtype", "float32", "--no-cache", *claims],
        "benchmarks": [
            "benchmarks.gpu",
            "--platform",
            platform,
            *(["--small"] if platform == "cpu" else []),
        ],
    }


def run(words: Sequence[str], environment: Mapping[str, str]) -> tuple[bool, str]:
    """Run a module of Python; return whether it passed, and what to report: its end, time and last lines."""
    start, output = (
        time.perf_counter(),
        {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True},
    )
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=environment, check=False, **output
    )
    end = f"FAILED with exit status {done.returncode}" if done.returncode else "passed"
    lines = done.stdout.replace(f"{ROOT}{os.sep}", "").strip().splitlines()[-60:]
    took = seconds(time.perf_counter() - start)
    return not done.returncode, "\n".join(
        [f"{end} in {took}", "", "```text", *lines, "```"]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.device", description=DESCRIPTION
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="default: benchmarks/devices/<device>.md",
    )
    output = parser.parse_args(argv).output
    words = [sys.executable, "-c", "from benchmarks import device; device.describe()"]
    found = json.loads(
        subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    )
    output = (
        output
        or ROOT
        / f"benchmarks/devices/{re.sub(r'[^a-z0-9]+', '-', found['kind'].lower())}.md"
    )
    if output.exists():
        parser.error(f"{output} exists; remove it, or name another file by --output")
    output.parent.mkdir(parents=True, exist_ok=True)
    versions = ", ".join(
        f"{name} {version}" for name, version in found["versions"].items() if version
    )
    head = [
        f"# {found['kind']}",
        f"{found['count']} {found['platform']} device(s); {versions}; {found['date'][:10]}.",
    ]
    if found["platform"] == "cpu":
        head.append(
            "**JAX found no accelerator. This is a run on the CPU, and says nothing about one.**"
        )
    environment = os.environ | {
        "JAX_PLATFORMS": found["jax_platforms"],
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    parts = commands(found["platform"])
    results = dict.fromkeys(parts, (False, "not run"))
    for part, words in parts.items():
        print(f"{part} on {found['kind']} ...", flush=True)
        results[part] = run(words, environment)
        print(results[part][1].splitlines()[0], flush=True)
        # After every part: a run that is broken off leaves what it has.
        sections = [f"## {name}: {said}" for name, (_, said) in results.items()]
        output.write_text("\n\n".join([*head, *sections]) + "\n", encoding="utf-8")
    print(f"Report: {output}")
    return int(not all(passed for passed, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main())

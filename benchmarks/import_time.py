"""How long it takes to import the package, against JAX alone: `python -m benchmarks.import_time`.

Every import runs in a process of its own, in turns, and is timed within it: the start of Python counts for neither.
`import jaxkern` loads no module of it; the third line loads all public ones but `jaxkern.sklearn`, which needs
scikit-learn, and is what a program pays that uses everything.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "jaxkern"
MODULES = sorted(
    f"jaxkern.{path.stem}"
    for path in PACKAGE.iterdir()
    if not path.name.startswith(("_", "."))
    and path.stem != "sklearn"
    and (path.suffix == ".py" or path.is_dir())
)
STATEMENTS = {
    "jax": "import jax",
    "jaxkern": "import jax, jaxkern",
    "all modules": f"import {', '.join(MODULES)}",
    "floor": "import jax, jax.numpy, jax.scipy.special, jax.scipy.linalg, scipy.special",
}
"""The floor is what no use of the modules can do without, and is not this package."""
TIMED = "from time import perf_counter; start = perf_counter(); {}; print(perf_counter() - start)"
LIMIT = 1.2


def seconds(statement: str) -> float:
    """Return how long a fresh process takes for an import."""
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", TIMED.format(statement)],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
    )
    return float(found.stdout)


def measure(rounds: int) -> dict[str, list[float]]:
    """Time every statement so many times, in turns whose order rotates, after one round that fills the disk's cache."""
    names = list(STATEMENTS)
    for name in names:
        seconds(STATEMENTS[name])
    times: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(seconds(STATEMENTS[name]))
    return times


def main() -> int:
    """Print medians and ratios; the status is 1 where `import jaxkern` takes more than 1.2 times `import jax`."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.import_time", description=__doc__
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=15,
        help="how often each import is timed (default: 15)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all times")
    options = parser.parse_args()
    times = measure(options.rounds)
    for name, found in times.items():
        # The median of the ratios within rounds: what slows the machine down slows both.
        ratio = statistics.median(
            a / b for a, b in zip(found, times["jax"], strict=True)
        )
        print(
            f"{name:<12} {1e3 * statistics.median(found):6.0f} ms   {ratio:5.2f} times jax"
        )
    if options.json:
        options.json.write_text(json.dumps(times, indent=1) + "\n")
    worst = statistics.median(
        a / b for a, b in zip(times["jaxkern"], times["jax"], strict=True)
    )
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

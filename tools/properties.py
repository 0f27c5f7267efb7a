"""What hypothesis draws for tests of jaxkern, for as long as is asked for: `python tools/properties.py --minutes 60`.

Each round runs every such test with 200 new examples and a seed of its own, every second round in double precision
throughout. A failure is printed with its example and the command that repeats it. Exit status: 0, or 1 if something
was found.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ["-m", "hypothesis and not slow", "tests/jaxkern"]
"""The plugin of hypothesis marks the tests that it draws for."""


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=60,
        help="a round that was begun is finished; default: 60",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first round; default: 1"
    )
    parser.add_argument(
        "--only",
        default="",
        help="modules and tests whose names hold this, as -k of pytest",
    )
    options = parser.parse_args(arguments)
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed
    failures = 0
    while seed == options.seed or time.monotonic() < end:
        failures += not passes(seed, options.only)
        seed += 1
    return bool(failures)


def passes(seed, only):
    """Run one round, and print what fails. Return whether nothing does."""
    words = ["--hypothesis-profile=fresh", f"--hypothesis-seed={seed}"]
    if seed % 2 == 0:
        words.append("--float64")
    command = [sys.executable, "-m", "pytest", *words, "-q", "--timeout=3600", *TESTS]
    if only:
        command += ["-k", only]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = done.stdout.strip().splitlines() or ["no output"]
    print(f"seed {seed}: {lines[-1]}", flush=True)
    failed = [line.split()[1] for line in lines if line.startswith("FAILED ")]
    if done.returncode and not failed:
        print(done.stdout[-4000:] + done.stderr[-4000:], flush=True)
    for name in failed:
        # All modules again: what hypothesis draws depends on the constants of those that are imported.
        test = name.partition("[")[0].rpartition("::")[2]
        again = f"python -m pytest {' '.join(words)} tests/jaxkern -k {test}"
        print(f"  {name}\n  again: {again}", flush=True)
    examples = r"^E {7}((?:Failing|    |\)|You can).*)"
    for line in re.findall(examples, done.stdout, re.MULTILINE):
        print(f"  {line}", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())

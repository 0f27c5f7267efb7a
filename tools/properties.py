"""The property modules on fresh examples for as long as is asked for: `python tools/properties.py --minutes 60`.

Each round runs every module with 200 new examples a test and a seed of its own, every second one in single precision
throughout. A failure is printed with its example and the command that repeats it. Exit status: 0, or 1 where something
was found.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    str(path.relative_to(ROOT))
    for path in ROOT.glob("tests/jaxkern/property/test_*.py")
)


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
    given = parser.parse_args(arguments)
    end, seed, found = time.monotonic() + 60 * given.minutes, given.seed, 0
    while seed == given.seed or time.monotonic() < end:
        words = [
            "--hypothesis-profile=fresh",
            f"--hypothesis-seed={seed}",
            *["--float32"] * (seed % 2 == 0),
        ]
        options = ["-q", "--timeout=3600", *(["-k", given.only] if given.only else [])]
        command = [sys.executable, "-m", "pytest", *words, *options, *MODULES]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        )
        failed = [
            line.split()[1]
            for line in done.stdout.splitlines()
            if line.startswith("FAILED ")
        ]
        print(
            f"seed {seed}: {(done.stdout.strip().splitlines() or ['no output'])[-1]}",
            flush=True,
        )
        if done.returncode and not failed:
            print(done.stdout[-4000:] + done.stderr[-4000:], flush=True)
        for name in failed:
            # All modules again: what hypothesis draws depends on the constants of those that are imported.
            test = name.partition("[")[0].rpartition("::")[2]
            print(
                f"  {name}\n  again: python -m pytest {' '.join(words)} tests/jaxkern/property -k {test}",
                flush=True,
            )
        for line in re.findall(
            r"^E {7}((?:Failing|    |\)|You can).*)", done.stdout, re.MULTILINE
        ):
            print(f"  {line}", flush=True)
        found += bool(done.returncode)
        seed += 1
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

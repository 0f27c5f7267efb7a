"""A long run of every public function on data that hurt (docs/tested.md).

python tools/stress.py --cases 20000 --seed 1        cases drawn from a seed; --only NAME for some functions
python tools/stress.py --case "('gram.gram', ...)"   one case again, as a failure prints it
"""

import argparse
import ast
import os
import sys
from pathlib import Path

if __name__ == "__main__":  # the switches of tests/conftest.py
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import jax
from support.cases import Case
from support.stress import NAMES, draw, judge, run


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument(
        "--only", default="", help="functions whose names start so; several with commas"
    )
    parser.add_argument(
        "--begin",
        default="",
        help="leave out the functions before this name, as after a run cut short",
    )
    parser.add_argument("--case", help="one case again")
    given = parser.parse_args(arguments)
    if given.case:
        complaints, end = judge(Case(*ast.literal_eval(given.case)))
        print(f"{end}: {'; '.join(complaints) or 'as it should be'}")
        return bool(complaints)
    names = tuple(
        name for name in NAMES if name.startswith(tuple(given.only.split(",")))
    )
    if not names:
        parser.error(f"no function is called {given.only!r}")
    cases = [draw(given.seed, given.first + i, names) for i in range(given.cases)]
    cases = [case for case in cases if case.name >= given.begin]
    failed, ends = run(cases, lambda s: print(s, flush=True))
    print(
        f"{len(cases)} cases of {len(names)} functions: {dict(ends)}, {failed} failed"
    )
    return bool(failed)


if __name__ == "__main__":
    jax.config.update("jax_debug_key_reuse", True)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_disable_most_optimizations", True)
    sys.exit(main())

"""The command line: `python -m benchmarks [--case NAME ...] [--small] [--json FILE] [--table FILE]`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import _machine

DESCRIPTION = """Time jaxkern and its peers in turns, in one process, with the same number of threads.

Ratios are medians of those of single rounds, with an interval that holds for any law of the times. The floor is the
work that no method can leave out, at the speed of the fastest library here. Exit status: 0, 1 where results disagreed
and were not compared, 2 bad usage. Targets that are missed are shown and change no status."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(argv)
    try:
        _machine.restrict(options.threads)
    except ValueError as error:
        return _bad(str(error))

    from benchmarks import _report, _run  # starts NumPy and JAX

    names = options.case or list(_run.REGISTRY)
    unknown = sorted(set(names) - set(_run.REGISTRY))
    if unknown:
        return _bad(f"there is no case {', '.join(unknown)}; --list shows them")
    if options.list:
        for name in names:
            print(f"{name:<22} {_run.REGISTRY[name].what}")
        return 0
    import jax

    results = []
    for name in names:
        jax.clear_caches()  # each case compiles its own programs, whatever ran before
        results.append(
            _run.run(_run.REGISTRY[name], is_small=options.small, rounds=options.rounds)
        )
        print(_report.lines(results[-1]), flush=True)
        # After every case: a run that is broken off leaves what it has.
        document = _run.document(results, is_small=options.small)
        if options.json:
            options.json.write_text(
                json.dumps(document, indent=1, allow_nan=False) + "\n"
            )
        if options.table:
            options.table.write_text(_report.table(document))
    return int(any("error" in result for result in results))


def _bad(message: str) -> int:
    print(f"benchmarks: {message}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--case", nargs="+", metavar="NAME", help="only these (default: all)"
    )
    parser.add_argument("--list", action="store_true", help="show the cases and exit")
    parser.add_argument(
        "--rounds",
        type=_positive,
        help="how often each function is timed (default: as the case says)",
    )
    parser.add_argument(
        "--threads",
        type=_positive,
        default=2,
        help="of every library, and cores (default: 2)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write everything that was measured"
    )
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="write Markdown tables"
    )
    parser.add_argument(
        "--small", action="store_true", help="tiny sizes, to see that everything runs"
    )
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


if __name__ == "__main__":
    _machine.large_pages()
    sys.exit(main())

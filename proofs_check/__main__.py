"""The command line: `python -m proofs_check [run|list|show|report] ...`."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:  # everything that imports jax waits until the arguments are read, so that --help is instant
    from proofs_check.claim import Claim
    from proofs_check.report import About
    from proofs_check.run import ClaimResult

PROG = "proofs-check"
COMMANDS = ("run", "list", "show", "report")
FLOAT32 = (
    "in float32 the counts of samples beyond 10^7 spread more than they should (twice at 10^12) and differences "
    "carry rounding, so tail bounds are judged more strictly there than they deserve"
)
EPILOG = """exit status: 0 every verdict is as expected, 1 some verdict differs, 2 bad usage or input, 130 interrupted.
JAX_PLATFORMS chooses the device."""
RUN_EXAMPLES = """examples:
  python -m proofs_check --paper kpotufe2020              all claims of one paper
  python -m proofs_check --claim kpotufe2020:thm1         one claim, or all that begin so
  python -m proofs_check --profile full --seed 7          more trials, more settings, other random numbers
  python -m proofs_check --data points.csv --output out   your own points, the report in out/

A run writes report.json, report.html and report.md into its folder.

"""
REPORT_EXAMPLES = """examples:
  python -m proofs_check report out                       out/report.html and out/report.md, from out/report.json

exit status: 0 both files are written, 2 there is no report that this version can read, and nothing is written."""


class UsageError(Exception):
    """What the user asked for cannot be done; the message is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (try {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Turns jax_enable_x64 on for the process, or off with --dtype float32.
    """
    # Small decompositions side by side are far slower when each one spreads over all cores, as OpenBLAS would have it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--version"]:
        from jaxkern import __version__

        print(f"{PROG} {__version__}")
        return 0
    if not arguments or arguments[0] not in (*COMMANDS, "-h", "--help"):
        arguments.insert(0, "run")
    try:
        options = _parser().parse_args(arguments)
        return int(options.command(options))
    except UsageError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before the first trial, or while reading
        print(f"{PROG}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as head, has seen enough; nothing must be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROG,
        description="Run the theorems of the papers as checks that can fail.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    commands = parser.add_subparsers(title="commands (run is the default)", required=True, parser_class=_Parser)

    choice = _Parser(add_help=False)
    choice.add_argument("--paper", metavar="KEY", help="only the claims of this paper, such as kpotufe2020")
    choice.add_argument(
        "--claim", metavar="ID", action="append", default=[], help="only this claim, or all that begin so; repeatable"
    )

    run = commands.add_parser(
        "run", parents=[choice], help="run the checks", description="Run the checks.", epilog=RUN_EXAMPLES + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    run.add_argument("--profile", choices=("quick", "full"), default="quick", help="how much to run (default: quick)")
    run.add_argument("--seed", type=_seed, default=0, metavar="INT", help="a whole number, below 2^32 (default: 0)")
    run.add_argument("--data", type=Path, metavar="FILE", help="your own points: .npz (with X), .npy or .csv")
    run.add_argument("--lengthscale", type=_positive, metavar="FLOAT", help="of the kernel; only with --data")
    run.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="precision of the trials")
    run.add_argument("--output", type=Path, metavar="DIR", help="a new or empty folder (default: a new one)")
    run.set_defaults(command=_run)

    listing = commands.add_parser("list", parents=[choice], help="list the claims", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="as a list of objects")
    listing.set_defaults(command=_list)

    show = commands.add_parser("show", help="show one claim", allow_abbrev=False)
    show.add_argument("id", metavar="ID")
    show.set_defaults(command=_show)

    page = commands.add_parser(
        "report", help="make report.html and report.md of a run again", epilog=REPORT_EXAMPLES,
        description="Make report.html and report.md again from the report.json of a run.",
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    page.add_argument("folder", type=Path, metavar="DIR", help="the folder of a run, with report.json in it")
    page.set_defaults(command=_report)
    return parser


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {2**32 - 1}, got {text[:30]!r}")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def _run(options: argparse.Namespace) -> int:
    if options.lengthscale is not None and options.data is None:
        raise UsageError("--lengthscale needs --data")
    if options.output is not None:
        _check_output(options.output)
    rows = _rows(options.data)
    _set_precision(options.dtype)
    from proofs_check import report
    from proofs_check.run import FAMILY_ALPHA, iterate
    from proofs_check.runner import PROFILES

    started = _now()
    population = _population(rows, options)
    claims = _select(_claims(population, options.profile), options.paper, options.claim)
    notes = [] if population is None else [str(population.note)]
    if options.dtype == "float32":
        notes.append(FLOAT32)
    note = "; ".join(notes)
    about = report.About(options.profile, options.seed, FAMILY_ALPHA, options.dtype, note)
    folder = _make_output(options.output, started, options.seed)
    results: list[ClaimResult] = []
    complete = False
    try:
        with report.progress() as tell:
            for result in iterate(
                claims,
                profile=PROFILES[options.profile],
                seed=options.seed,
                data=population is not None,
                progress=tell,
            ):
                results.append(result)
        complete = True
    except KeyboardInterrupt:
        print(f"{PROG}: interrupted after {len(results)} of {len(claims)} claim(s)", file=sys.stderr)
    _write(folder, results, about, started, options, complete)
    report.terminal(results, about)
    print(f"Report: {folder / 'report.html'} (and report.json, report.md)")
    if not complete:
        return 130
    return 0 if all(result.as_expected for result in results) else 1


def _list(options: argparse.Namespace) -> int:
    _set_precision("float64")
    claims = _select(_claims(None, "quick"), options.paper, options.claim)
    import json

    from proofs_check.report import describe

    described = [describe(claim) for claim in claims]
    if options.json:
        print(json.dumps(described, indent=1, allow_nan=False))
        return 0
    width = max((len(d["id"]) for d in described), default=0)
    for d in described:
        verdicts = [f"{form}: {d['expected_' + form]}" for form in ("printed", "corrected") if d["expected_" + form]]
        print(f"{d['id'].ljust(width)}  {d['where']} ({d['kind']}); {', '.join(verdicts)}")
    return 0


def _show(options: argparse.Namespace) -> int:
    _set_precision("float64")
    chosen = _select(_claims(None, "quick"), None, [options.id])
    if len(chosen) > 1:
        raise UsageError(f"{options.id!r} begins several claims: {', '.join(claim.id for claim in chosen)}")
    claim = chosen[0]
    print(f"{claim.id}: {claim.paper}, {claim.where} ({claim.kind})\n  {claim.tex}")
    for name, form in (("as printed", claim.printed), ("as corrected", claim.corrected)):
        if form is not None:
            print(f"{name}: a {type(form.statement).__name__} statement, expected {form.expect}")
            if form.tex:
                print(f"  {form.tex}")
            print(f"  tried at: {', '.join(setting.name for setting in form.settings)}")
    print(f"controls: {', '.join(control.name for control in claim.controls) or 'none'}")
    print(f"because: {claim.because}")
    return 0


def _report(options: argparse.Namespace) -> int:
    from proofs_check import document

    folder = options.folder
    path = folder / "report.json"
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give the folder of a run")
    if not path.is_file():
        raise UsageError(f"{folder} holds no report.json; give the folder of a run")
    try:
        _write_pages(folder, document.read(path))
    except document.ReportError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{folder} cannot be written to ({error.strerror})") from None
    print(f"Report: {folder / 'report.html'} (and report.md)")
    return 0


def _write_pages(folder: Path, found: Mapping[str, Any]) -> None:
    from proofs_check import document, html, markdown

    pages = {"report.html": html.render(found), "report.md": markdown.render(found)}
    for name, text in pages.items():
        document.write_text(folder / name, text)


def _set_precision(dtype: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")


def _rows(path: Path | None) -> Any:
    if path is None:
        return None
    from proofs_check.data import DataError, load

    try:
        return load(path)
    except DataError as error:
        raise UsageError(str(error)) from None


def _population(rows: Any, options: argparse.Namespace) -> Any:
    if rows is None:
        return None
    from proofs_check.populations import from_rows

    try:
        return from_rows(rows, lengthscale=options.lengthscale, seed=options.seed)
    except ValueError as error:
        raise UsageError(f"{options.data}: {error}") from None


def _claims(population: Any, profile: str) -> list[Claim]:
    from proofs_check.claims.registry import claims

    return list(claims(data=population, profile=profile))


def _select(claims: Sequence[Claim], paper: str | None, wanted: Sequence[str]) -> list[Claim]:
    """Return the claims of a paper that are named, or that begin with what is named, in the order of the registry."""
    if paper is not None:
        papers = sorted({claim.paper for claim in claims})
        if paper not in papers:
            raise UsageError(f"no claims of a paper {paper!r}; there are {', '.join(papers)}")
        claims = [claim for claim in claims if claim.paper == paper]
    if not wanted:
        return list(claims)
    ids = [claim.id for claim in claims]
    chosen: set[str] = set()
    for name in wanted:
        found = [name] if name in ids else [i for i in ids if name and i.startswith(name)]
        if not found:
            close = difflib.get_close_matches(name, ids, n=4, cutoff=0.4)
            hint = f"; did you mean {', '.join(close)}?" if close else f"; see {PROG} list"
            raise UsageError(f"no claim {name!r}{f' of {paper}' if paper else ''}{hint}")
        chosen.update(found)
    return [claim for claim in claims if claim.id in chosen]


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def _check_output(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise UsageError(f"--output {path} is a file")
    try:
        if path.exists() and any(path.iterdir()):
            raise UsageError(f"--output {path} is not empty; choose a new folder")
    except OSError as error:
        raise UsageError(f"--output {path} cannot be used ({error.strerror})") from None


def _make_output(path: Path | None, started: str, seed: int) -> Path:
    """Make the folder of this run before its first trial: a new one, or the empty one that was asked for."""
    try:
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
            return path
        for attempt in range(1, 1000):
            path = Path("proofs_report", f"{started}-{seed}" + (f"-{attempt}" if attempt > 1 else ""))
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            return path
        raise UsageError(f"cannot make a new folder under {path.parent if path else path}")
    except OSError as error:
        raise UsageError(f"cannot make the folder {path} ({error.strerror})") from None


def _write(
    folder: Path,
    results: Sequence[ClaimResult],
    about: About,
    started: str,
    options: argparse.Namespace,
    complete: bool,
) -> None:
    import platform

    import jax
    import numpy
    import scipy

    from jaxkern import __version__
    from proofs_check import report

    run = {
        "started": started,
        "finished": _now(),
        "command": {k: v for k, v in vars(options).items() if k != "command"},
        "folder": str(folder),
        "versions": {
            "jaxkern-verified": __version__,
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
        },
        "platform": platform.platform(),
        "device": str(jax.devices()[0].device_kind),
    }
    found = report.as_json(results, about, run=run, complete=complete)
    report.write_json(folder / "report.json", found)
    _write_pages(folder, found)


if __name__ == "__main__":
    sys.exit(main())

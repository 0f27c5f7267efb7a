"""The command line: `python -m proofs_check [run|list|show|attack|certify|resume|report] ...`."""

import argparse
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proofs_check.cli import cache, own
from proofs_check.engine import table_options as tables
from proofs_check.report import console
from proofs_check.usage import (
    BAD_USAGE,
    INTERRUPTED,
    NOT_WRITTEN,
    PROG,
    Parser,
    UsageError,
    positive,
    whole,
)

# All else is imported by the commands, after the arguments are read, so that --help is instant.

Command = Callable[[argparse.Namespace], int]
COMPILING = ("run", "attack", "certify", "resume")
COMMANDS = (*COMPILING, "list", "show", "report", "new")
EPILOG = """exit status: 0 every verdict is as expected (of a claim of your own without expect= any verdict is), 1 some
verdict differs or the time ended before every claim had its turn, 2 bad usage or input, 3 a file or the output cannot
be written, 130 interrupted.
JAX_PLATFORMS chooses the device. Compiled programs are kept for the next run: in --cache DIR, else where
JAX_COMPILATION_CACHE_DIR says, else in ~/.cache/jaxkern."""
RUN_EXAMPLES = """examples:
  python -m proofs_check --paper kpotufe2020              all claims of one paper
  python -m proofs_check --claim kpotufe2020:thm1         one claim, or all that begin so
  python -m proofs_check --profile full --seed 7          more trials, more settings, other random numbers
  python -m proofs_check --data points.csv --output out   your own points, the report in out/
  python -m proofs_check --budget 30                      then half an hour in all where verdicts are still open
  python -m proofs_check --claims mine.py                 claims of your own; new mine.py writes an example

A run writes report.json, report.html and report.md into its folder. What is interrupted can be resumed.

"""
RESUME_EXAMPLES = """examples:
  python -m proofs_check resume out                       what Ctrl-C, kill -9 or a full disk left undone
  python -m proofs_check resume out --budget 30           half an hour more where verdicts are still open

A resumed run ends with the report of a run that was never interrupted. A finished one stays as it is, unless
--budget is given.

"""
LIST_EXAMPLES = """examples:
  python -m proofs_check list --paper chen2016            every claim of a paper, with the verdicts that are expected
  python -m proofs_check list --json                      the same for programs"""
SHOW_EXAMPLES = """examples:
  python -m proofs_check show kpotufe2020:thm1            statement, hypotheses, settings, controls
  python -m proofs_check show ghashami2016 "Theorem 3.2"  the same, by its place in the paper"""
NEW_EXAMPLES = """examples:
  python -m proofs_check new mine.py                      two claims, a true one and a false one
  python -m proofs_check --claims mine.py                 a verdict on each, and a page"""
REPORT_EXAMPLES = """examples:
  python -m proofs_check report out                       out/report.html and out/report.md, from out/report.json

exit status: 0 both files are written, 2 there is no report that this version can read, and nothing is written,
3 a file cannot be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Turns jax_enable_x64 on for the process, or off with --dtype float32. A standard output that somebody has closed, as
    `head` does, ends nothing and changes no status; one that fails otherwise is status 3.
    """
    with console.streams() as (out, _):
        status: int | SystemExit
        try:
            status = _command(argv)
        except SystemExit as end:  # --help
            status = end
        out.flush()
        if out.error is not None and not isinstance(out.error, BrokenPipeError):
            print(
                f"{PROG}: standard output cannot be written ({out.error.strerror})",
                file=sys.stderr,
            )
            return NOT_WRITTEN
        if isinstance(status, SystemExit):
            raise status
        return status


def leave() -> None:
    """Run the command line and end the process with its status, once its threads have ended.

    What is not waited for is that JAX forgets every program, which takes seconds.
    """
    status = main()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    logging.shutdown()
    for stream in filter(
        None, (sys.stdout, sys.stderr)
    ):  # None where it was closed from the start
        with contextlib.suppress(OSError, ValueError):  # as `main` has said
            stream.flush()
    os._exit(status)


def _command(argv: Sequence[str] | None) -> int:
    environment()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--version"]:
        from jaxkern import __version__

        print(f"{PROG} {__version__}")
        return 0
    if not arguments or arguments[0] not in (*COMMANDS, "-h", "--help"):
        arguments.insert(0, "run")
    try:
        programs = None
        if arguments[0] in COMPILING and not {"-h", "--help"} & set(arguments):
            chosen, _ = _cache_options().parse_known_args(
                arguments
            )  # before JAX is imported, which some arguments need
            programs = cache.prepare(chosen.cache, off=chosen.no_cache)
        options = _parser(arguments[0]).parse_args(arguments)
        options.programs = programs
        return int(options.command(options))
    except UsageError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:  # before the first trial, or while reading
        print(f"{PROG}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # one that names its file, or a StorageError
        said = (
            str(error)
            if error.strerror is None
            else f"{error.filename or 'a file'}: {error.strerror}"
        )
        print(f"{PROG}: {said}", file=sys.stderr)
        return NOT_WRITTEN


def environment() -> None:
    """Set what OpenBLAS, JAX and XLA read when they are imported, but for what the user has set."""
    cores = os.cpu_count() or 1
    # Small decompositions side by side are far slower when each one spreads over all cores, as OpenBLAS would have it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # XLA's CPU decompositions wait for each other in a pool of one thread a core, and for ever where they are more; but
    # threads that have nothing to do look for work in all the others' queues.
    os.environ.setdefault("PJRT_NPROC", str(max(16, 4 * cores)))
    # What is not a trial runs once: compiling it takes longer. And nobody reads where a line of a program came from.
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
    if version("jaxlib").startswith(
        "0.10."
    ):  # XLA aborts at flags that other versions do not know
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")


def _cache_options() -> Parser:
    parser = Parser(prog=PROG, add_help=False, allow_abbrev=False)
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="keep compiled programs here, in a folder of your own",
    )
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="keep no compiled programs, and use none",
    )
    return parser


def _parser(chosen: str = "run") -> argparse.ArgumentParser:
    shape: dict[str, Any] = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    what = "Run the theorems of the papers as checks that can fail."
    parser = Parser(prog=PROG, description=what, epilog=EPILOG, **shape)
    parser.add_argument(
        "--version", action="store_true", help="show the version and exit"
    )
    commands = parser.add_subparsers(
        title="commands (run is the default)", required=True, parser_class=Parser
    )

    def add(
        name: str, command: Command, what: str, *parents: Parser, examples: str = ""
    ) -> Parser:
        described = f"{what[0].upper()}{what[1:]}."
        made = commands.add_parser(
            name,
            help=what,
            description=described,
            epilog=examples,
            parents=list(parents),
            **shape,
        )
        made.set_defaults(command=command)
        return made

    choice, caching = Parser(add_help=False), _cache_options()
    choice.add_argument(
        "--paper",
        metavar="KEY",
        help="only the claims of this paper, such as kpotufe2020",
    )
    choice.add_argument(
        "--claim",
        metavar="ID",
        action="append",
        default=[],
        help="only this claim, or all that begin so; repeatable",
    )
    choice.add_argument(
        "--claims",
        metavar="FILE",
        action="append",
        default=[],
        help="those of your own Python file; repeatable",
    )
    budget = Parser(add_help=False)
    budget.add_argument(
        "--budget",
        type=positive,
        metavar="MINUTES",
        help="go on where verdicts are open until this time is over",
    )

    run = add(
        "run",
        _run,
        "run the checks",
        choice,
        caching,
        budget,
        examples=RUN_EXAMPLES + EPILOG,
    )
    run.add_argument(
        "--all",
        action="store_true",
        help="steps of proofs, remarks and facts in passing, too",
    )
    run.add_argument(
        "--profile",
        choices=("quick", "full"),
        default="quick",
        help="how much to run (default: quick)",
    )
    run.add_argument(
        "--seed",
        type=whole,
        default=0,
        metavar="INT",
        help="a whole number, below 2^32 (default: 0)",
    )
    run.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="your own points: .csv, .parquet, .npz (with X) or .npy",
    )
    tables.add_arguments(run)
    run.add_argument(
        "--lengthscale",
        type=positive,
        metavar="FLOAT",
        help="of the kernel; only with --data",
    )
    run.add_argument(
        "--dtype",
        choices=("float64", "float32"),
        default="float64",
        help="precision of the trials",
    )
    run.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="a new or empty folder (default: a new one)",
    )
    listing = add("list", _list, "list the claims", choice, examples=LIST_EXAMPLES)
    listing.add_argument("--json", action="store_true", help="as a list of objects")
    show = add("show", _show, "show one claim", examples=SHOW_EXAMPLES)
    show.add_argument(
        "--claims",
        metavar="FILE",
        action="append",
        default=[],
        help="one of your own Python file",
    )
    show.add_argument(
        "words",
        metavar="ID",
        nargs="+",
        help="an id or its beginning, or a paper and a place in it",
    )
    attack = add("attack", _attack, "search the worst case of a claim", caching)
    certify = add(
        "certify", _certify, "certify a feature map for your own table", caching
    )
    if chosen == "attack":
        from proofs_check.cli.attack import add_arguments

        add_arguments(attack)
    if chosen == "certify":
        from proofs_check.certify.command import add_arguments as add_certify_arguments

        add_certify_arguments(certify)
    again = add(
        "resume",
        _resume,
        "go on with a run that was interrupted",
        caching,
        budget,
        examples=RESUME_EXAMPLES + EPILOG,
    )
    again.add_argument("folder", type=Path, metavar="DIR", help="the folder of a run")
    page = add(
        "report",
        _report,
        "make report.html and report.md of a run again",
        examples=REPORT_EXAMPLES,
    )
    page.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="the folder of a run, with report.json in it",
    )
    new = add(
        "new",
        _new,
        "write an example of a file of claims of your own",
        examples=NEW_EXAMPLES,
    )
    new.add_argument("file", type=Path, metavar="FILE", help="a new Python file")
    return parser


def _run(options: argparse.Namespace) -> int:
    from proofs_check.cli import job
    from proofs_check.cli.request import Request

    request = Request(
        profile=options.profile,
        seed=options.seed,
        dtype=options.dtype,
        paper=options.paper,
        claim=tuple(options.claim),
        margin=options.all,
        data=None if options.data is None else str(options.data),
        lengthscale=options.lengthscale,
        budget=options.budget,
        table=tables.asked(options),
        files=tuple(str(Path(path).absolute()) for path in options.claims),
    )
    return job.start(request, options.output, options.programs)


def _resume(options: argparse.Namespace) -> int:
    from proofs_check.cli import job

    return job.resume(options.folder, options.budget, options.programs)


def _attack(options: argparse.Namespace) -> int:
    from proofs_check.cli import attack

    return attack.command(options)


def _certify(options: argparse.Namespace) -> int:
    from proofs_check.certify import command

    return command.command(options)


def _list(options: argparse.Namespace) -> int:
    import json

    from proofs_check.cli import request
    from proofs_check.report.document import describe

    described = [
        describe(claim)
        for claim in request.select(_told(options), options.paper, options.claim)
    ]
    if options.json:
        print(json.dumps(described, indent=1, allow_nan=False))
        return 0
    width = max((len(d["id"]) for d in described), default=0)
    for d in described:
        verdicts = [
            f"{form}: {d['expected_' + form]}"
            for form in ("printed", "corrected")
            if d["expected_" + form]
        ]
        marginal = " [margin]" if d["marginal"] else ""
        expected = f"; {', '.join(verdicts)}" if verdicts else ""
        print(
            f"{d['id'].ljust(width)}  {d['where']}: {d['title']} ({d['kind']}){expected}{marginal}"
        )
    return 0


def _show(options: argparse.Namespace) -> int:
    from proofs_check.cli import request, show
    from proofs_check.register import claims

    words, told = " ".join(options.words), _told(options)
    chosen = (
        show.at_place(told, words)
        if " " in words
        else request.select(told, None, [words])
    )
    if len(chosen) > 1:
        raise UsageError(
            f"{words!r} names several claims: {', '.join(claim.id for claim in chosen)}"
        )
    request.set_precision("float64")
    with own.blamed(options.claims):
        (claim,) = chosen if options.claims else claims(only={chosen[0].id})
        print("\n".join(show.lines(claim, own=bool(options.claims))))
    return 0


def _told(options: argparse.Namespace) -> list[Any]:
    """Return the claims of files, or the outlines of those of the papers."""
    from proofs_check.cli import request
    from proofs_check.register import outlines

    if not options.claims:
        return outlines()
    request.set_precision("float64")
    return own.claims_of(options.claims)


def _new(options: argparse.Namespace) -> int:
    return own.write_example(options.file)


def _report(options: argparse.Namespace) -> int:
    from proofs_check.cli import job
    from proofs_check.engine import documents
    from proofs_check.report import document

    folder = options.folder
    path = folder / "report.json"
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give the folder of a run")
    if not path.is_file():
        raise UsageError(f"{folder} holds no report.json; give the folder of a run")
    try:
        job.write_pages(folder, document.read(path))
    except documents.DocumentError as error:
        raise UsageError(str(error)) from None
    print(job.what_is_there(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The command line: `python -m proofs_check.report.atlas [RUN] [--docs DIR]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from proofs_check.cli import request
from proofs_check.engine import documents
from proofs_check.engine.files import write
from proofs_check.papers import figures as _command
from proofs_check.report import document
from proofs_check.report.atlas import _errata, _pages
from proofs_check.usage import BAD_USAGE, NOT_WRITTEN, StorageError, UsageError

PROG = "python -m proofs_check.report.atlas"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the atlas of a run and the errata into the documentation; print what was written."""
    parser = _command.Parser(
        prog=PROG, description="Write DIR/errata.md, and from the report of a run DIR/atlas/.", allow_abbrev=False
    )
    parser.add_argument(
        "run", nargs="?", type=Path, metavar="RUN", help="the folder of a full run; without it, the errata alone"
    )
    parser.add_argument("--docs", type=Path, default=Path("docs"), metavar="DIR", help="default: docs")
    try:
        options = parser.parse_args(argv)
        for path, text in files(options.run, options.docs).items():
            path.parent.mkdir(exist_ok=True)
            write(path, text)
            print(f"{path}: {len(text.encode()):,} bytes")
    except (UsageError, documents.DocumentError, StorageError) as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return NOT_WRITTEN if isinstance(error, StorageError) else BAD_USAGE
    return 0


def files(run: Path | None, docs: Path) -> dict[Path, str]:
    """Return what is to be written, by path; a note on standard error says what the run lacks."""
    if not docs.is_dir():
        raise UsageError(f"--docs {docs} is no folder")
    request.set_precision("float64")
    claims = request.known_claims()
    found = {docs / "errata.md": _errata.page(claims)}
    if run is None:
        return found
    path = run / "report.json"
    if not path.is_file():
        raise UsageError(f"{run} holds no report.json; give the folder of a run")
    report = document.read(path)
    ids = {claim["id"] for claim in report["claims"]}
    missing = [claim.id for claim in claims if claim.id not in ids]
    if missing or report["profile"] != "full":
        print(
            f"{PROG}: this is not the run for the documentation: profile {report['profile']}, "
            f"{len(missing)} claim(s) of the registry missing",
            file=sys.stderr,
        )
    pages = _pages.files(report, _errata.anchors(claims))
    return found | {docs / "atlas" / name: text for name, text in pages.items()}


if __name__ == "__main__":
    sys.exit(main())

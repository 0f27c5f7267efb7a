"""`python -m proofs_check.cli.atlas [RUN] [--docs DIR]`: what the documentation stores of a run, and the errata.

Sphinx calls `build` when the documentation is built.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofs_check import register
from proofs_check.cli import request
from proofs_check.engine import documents, files
from proofs_check.report import atlas, document, errata
from proofs_check.usage import BAD_USAGE, NOT_WRITTEN, Parser, StorageError, UsageError

PROG = "python -m proofs_check.cli.atlas"
STORED = "atlas.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Write what the atlas needs of a run, and the errata, into the documentation; print what was written."""
    parser = Parser(
        prog=PROG,
        description=f"Write DIR/errata.md, and from the report of a run DIR/{STORED}.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "run",
        nargs="?",
        type=Path,
        metavar="RUN",
        help="the folder of a run; without: the errata",
    )
    parser.add_argument(
        "--docs", type=Path, default=Path("docs"), metavar="DIR", help="default: docs"
    )
    try:
        options = parser.parse_args(argv)
        if not options.docs.is_dir():
            raise UsageError(f"--docs {options.docs} is no folder")
        texts = {}
        if options.run is not None:
            texts[STORED] = _stored(document.read(options.run / "report.json"))
        request.set_precision("float64")
        texts["errata.md"] = errata.page(register.claims())
        for name, text in texts.items():
            files.write(options.docs / name, text)
            print(f"{options.docs / name}: {len(text.encode()):,} bytes")
    except (UsageError, documents.DocumentError, StorageError) as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return NOT_WRITTEN if isinstance(error, StorageError) else BAD_USAGE
    return 0


def _stored(report: Mapping[str, Any]) -> str:
    """Return the evidence of a report as JSON, a line a claim, so that a comparison shows what changed."""
    stored = atlas.evidence_of(report)
    claims = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(evidence)}"
        for name, evidence in stored.pop("claims").items()
    )
    head = json.dumps(stored, indent=1, allow_nan=False).removesuffix("\n}")
    return f'{head},\n "claims": {{\n{claims}\n }}\n}}\n'


def build(docs: Path) -> None:
    """Write the atlas into DIR/atlas and the inventory into DIR/theory, from what is stored and from the register."""
    request.set_precision("float64")
    claims = register.claims()
    run = documents.read_json(docs / STORED)
    pages = {
        f"atlas/{name}": text
        for name, text in atlas.files(run, claims, errata.anchors(claims)).items()
    }
    pages["theory/inventory.md"] = errata.inventory(
        {paper: register.entries(paper) for paper in register.PAPERS}
    )
    (docs / "atlas").mkdir(exist_ok=True)
    for name, text in pages.items():
        if not files.holds(docs / name, text):  # or Sphinx would read it anew
            files.write(docs / name, text)


if __name__ == "__main__":
    sys.exit(main())

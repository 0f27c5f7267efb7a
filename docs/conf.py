"""Configuration of the documentation. Build with `python -m sphinx -W -b html docs docs/_build/html`."""

import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the docs are those of this checkout, installed or not

project = "jaxkern"
author = "The jaxkern developers"
copyright = author
release = re.search(
    r'__version__ = "([^"]+)"',
    (ROOT / "jaxkern" / "__init__.py").read_text(encoding="utf-8"),
)[1]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = False
suppress_warnings = [
    "ref.python"
]  # sizes have one name in all maps: a reference to it has several targets

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_show_sphinx = False

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_attr_annotations = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_google_docstring = False

MODULES = """kernels gram measures problems rkhs landmarks features frequent_directions audit plan scale ragged io
sklearn regression kmeans clustering learn metrics bounds bounds.sketching bounds.fourier bounds.streaming
bounds.concentration linalg draws pytrees checks"""


def _plain_text(app, what, name, obj, options, lines):
    """Let docstrings be plain text: |Sigma|, S* and K_x are mathematics there, and no markup."""
    del app, what, name, obj, options
    text = list(lines)
    sections = [i - 1 for i, line in enumerate(text) if re.fullmatch(r"-{3,}", line)]
    section, in_example = "", False
    lines.clear()
    for i, line in enumerate(text):
        section = text[i] if i in sections else section
        in_example = line.lstrip().startswith(">>>") or (
            in_example and bool(line.strip())
        )
        if in_example or i - 1 in sections:
            lines.append(line)
            continue
        argument = re.match(r"(\w+(?:, \w+)*) : (.*)", line)
        if line.startswith("Source: ") and section:
            lines.extend(["", "References", "----------"])
            line = line.removeprefix("Source: ")
        elif argument and section in ("Parameters", "Attributes"):
            lines.append(argument[1])
            line = "    " + argument[2]
        elif argument and not sections:  # arguments in a paragraph of their own
            line = f":param {argument[1]}: {argument[2]}"
        pieces = re.split(r"(``.*?``|`[^`]*`)", line)
        pieces[::2] = [
            re.sub(r"([|*])|(?<=\w)(_)(?!\w)", r"\\\g<0>", piece)
            for piece in pieces[::2]
        ]
        lines.append("".join(pieces))


def _skip(app, what, name, obj, skip, options):
    """Leave out what makes a class a PyTree, and what scikit-learn gives every estimator with weights."""
    del app, what, obj, options
    theirs = (
        "set_fit_request",
        "set_score_request",
        "set_partial_fit_request",
        "get_metadata_routing",
    )
    return (
        True if name in ("tree_flatten_with_keys", "tree_unflatten", *theirs) else skip
    )


def _math(page, node):
    """Write a formula as MathML; one that cannot be is a warning, and its source stands there."""
    from docutils import nodes
    from sphinx.util import logging

    from proofs_check.report.formulas import formula

    inline = isinstance(node, nodes.math)
    found = formula(node.astext().strip(), inline=inline)
    if "<code" in found:
        logging.getLogger(__name__).warning(
            "no MathML for %r", node.astext(), location=node
        )
    page.body.append(str(found) if inline else f'<div class="math">{found}</div>\n')
    raise nodes.SkipNode


def api_pages():
    """Return the pages of the public modules by their names: a line for each name, and what autodoc fills in."""
    from proofs_check.report.markdown import table

    pages = {}
    for name in MODULES.split():
        module = importlib.import_module(f"jaxkern.{name}")
        values = {public: getattr(module, public) for public in module.__all__}
        told = [
            (f"`{p}`", _first(v))
            for p, v in values.items()
            if callable(v) or inspect.ismodule(v)
        ]
        more = "\n   :inherited-members:" if name in ("features", "problems") else ""
        pages[f"{name}.md"] = (
            f"# jaxkern.{name}\n\n{_first(module)}\n\n{table(('name', 'what it is or does'), told)}\n\n"
            f"```{{eval-rst}}\n.. automodule:: jaxkern.{name}\n   :imported-members:{more}\n```\n"
        )
    return pages


def _first(value):
    from proofs_check.report.markdown import cell

    pieces = re.split(
        r"(`[^`|]*`)", " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    )
    return "".join(piece if piece[:1] == "`" else cell(piece) for piece in pieces)


def _pages(app):
    """Write the pages of the API, and those of the atlas from one stored run and from the register."""
    from proofs_check.cli import atlas
    from proofs_check.engine import files

    docs = Path(app.srcdir)
    for name, text in api_pages().items():
        if not files.holds(docs / "api" / name, text):  # or Sphinx would read it anew
            files.write(docs / "api" / name, text)
    atlas.build(docs)


def setup(app):
    """Make the generated pages, write formulas as MathML, and escape before napoleon reads the docstrings."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_math, None), block_renderers=(_math, None)
    )
    app.connect("builder-inited", _pages)
    app.connect("autodoc-process-docstring", _plain_text, priority=100)
    app.connect("autodoc-skip-member", _skip)

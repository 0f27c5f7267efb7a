"""Configuration of the documentation. Build with `python -m sphinx -W -b html docs docs/_build/html`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the docs are those of this checkout, installed or not

project = "jaxkern"
author = "The jaxkern developers"
copyright = author
release = re.search(r'__version__ = "([^"]+)"', (ROOT / "jaxkern" / "__init__.py").read_text(encoding="utf-8"))[1]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = False
suppress_warnings = ["ref.python"]  # sizes have one name in all maps: a reference to it has several targets

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_sphinx = False

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_attr_annotations = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_google_docstring = False


def _plain_text(app, what, name, obj, options, lines):
    """Let docstrings be plain text: |Sigma|, S* and K_x are mathematics there, and no markup."""
    del app, what, name, obj, options
    text = list(lines)
    sections = [i - 1 for i, line in enumerate(text) if re.fullmatch(r"-{3,}", line)]
    section, in_example = "", False
    lines.clear()
    for i, line in enumerate(text):
        section = text[i] if i in sections else section
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
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
        pieces[::2] = [re.sub(r"([|*])|(?<=\w)(_)(?!\w)", r"\\\g<0>", piece) for piece in pieces[::2]]
        lines.append("".join(pieces))


def _skip(app, what, name, obj, skip, options):
    """Leave out what makes a class a PyTree."""
    del app, what, obj, options
    return True if name in ("tree_flatten_with_keys", "tree_unflatten") else skip


def _atlas(app):
    """Write the pages of the atlas, from one stored run and from the register."""
    from proofs_check.cli import atlas

    atlas.build(Path(app.srcdir))


def setup(app):
    """Make the generated pages, and escape before napoleon reads the docstrings."""
    app.connect("builder-inited", _atlas)
    app.connect("autodoc-process-docstring", _plain_text, priority=100)
    app.connect("autodoc-skip-member", _skip)

"""Links of the README and of the documentation lead to files, headings, labels and sources; without a network.

Anchors are those that GitHub and MyST make of headings: lower case, spaces as hyphens, no punctuation, and a number
behind a heading that was there before.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
IN_DOCS = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if not {"_build", "atlas", "inventory.md"} & set(page.parts)
]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *IN_DOCS,
]
GENERATED = {
    DOCS / "theory" / "inventory.md",
    *(
        DOCS / "atlas" / f"{name}.md"
        for name in ("index", "kpotufe2020", "chen2016", "ghashami2016", "amini2021")
    ),
}
"""Pages that are made when the documentation is built; tests/report looks at them."""
DEEPEST = 3  # of the headings that get an anchor, as docs/conf.py says in myst_heading_anchors


def without_code(text):
    """Return a page without its code and formulas, in which brackets are no links; blocks keep their first line."""
    text = re.sub(
        r"^(`{3,})([^`\n]*)\n.*?^\1`*$", r"\2", text, flags=re.MULTILINE | re.DOTALL
    )
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(
        r"(?<!\})(`+)[^`]+?\1", "code", text
    )  # what stands behind a role is kept
    return re.sub(r"(?<![\\$])\$[^$\n]+(?:\n[^$\n]+)?\$", "formula", text)


def anchors(text):
    """Return the anchors of the headings of a page, in the words of GitHub and MyST."""
    text = re.sub(r"^(`{3,}).*?^\1`*$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(rf"^#{{1,{DEEPEST}}} (.+)$", text, re.MULTILINE):
        words = re.sub(r"\\([\\`*_\[\]|$~])", r"\1", heading.replace("`", ""))
        slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        again = 1
        while slug in found:
            slug = f"{slug.removesuffix(f'-{again - 1}')}-{again}"
            again += 1
        found.add(slug)
    return found


def links(text):
    """Return the targets of the links and pictures of a page."""
    return re.findall(
        r"\]\(<?([^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)?)>?(?: \"[^\"]*\")?\)",
        without_code(text),
    )


def roles(text, name):
    """Return the targets of a role such as {doc}, whose text may stand in front of them."""
    found = re.findall(rf"\{{{name}\}}`([^`]+)`", text)
    return [
        re.sub(r"\s+", " ", re.sub(r"(?s)^.*<(.*)>$", r"\1", target)).strip()
        for target in found
    ]


def labels():
    """Return the labels (label)= of all pages."""
    return [
        label
        for page in IN_DOCS
        for label in re.findall(r"^\(([\w.-]+)\)=$", read(page), re.MULTILINE)
    ]


def read(page):
    return page.read_text(encoding="utf-8")


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page):
    text = read(page)
    for target in links(text):
        if re.match(r"[a-z]+:", target):
            assert target.startswith(("https://", "mailto:")), target
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target}: there is no such file"
        assert ROOT in file.parents, f"{target} leads out of the project"
        if anchor:
            assert anchor in anchors(read(file)), f"{target}: there is no such heading"


@pytest.mark.parametrize("page", IN_DOCS, ids=name_of)
def test_roles_lead_to_pages_and_labels(page):
    text, known = read(page), set(labels())
    for target in roles(text, "doc"):
        file = (
            DOCS / target.lstrip("/")
            if target.startswith("/")
            else page.parent / target
        ).with_suffix(".md")
        assert file.exists() or file.resolve() in GENERATED, f"{{doc}} {target}"
    for target in roles(text, "ref"):
        assert target in known, f"{{ref}} {target}"


def test_labels_are_unique():
    found = labels()
    assert len(set(found)) == len(found)


def test_every_page_is_in_a_table_of_contents_and_every_entry_is_a_page():
    reached, todo = set(), [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        reached.add(page)
        for block in re.findall(
            r"^```\{toctree\}\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL
        ):
            for entry in [
                line.strip()
                for line in block.splitlines()
                if line.strip() and not line.startswith(":")
            ]:
                entry = re.sub(r"^.*<(.*)>$", r"\1", entry)
                file = (page.parent / f"{entry}.md").resolve()
                if file in GENERATED:
                    continue
                assert file.exists(), f"{name_of(page)}: {entry}"
                todo += [file] if file not in reached else []
    assert {name_of(page) for page in reached} == {name_of(page) for page in IN_DOCS}


def test_every_key_that_is_cited_stands_in_the_references():
    known = set(
        re.findall(r"^\((\w+)\)=\n`\1`\n: ", read(DOCS / "references.md"), re.MULTILINE)
    )
    assert len(known) >= 10
    sources = [
        *PAGES,
        *(ROOT / "jaxkern").rglob("*.py"),
        *(ROOT / "proofs_check").rglob("*.py"),
    ]
    for path in sources:
        cited = set(re.findall(r"\b[a-z]{4,}(?:19|20)\d\d\b(?!_)", read(path))) - {
            "toy2020"
        }
        assert cited <= known, f"{name_of(path)}: {sorted(cited - known)}"


# The reader above, on a page whose links are known.

PAGE = """# One `two:3.4`, it's

Text [a](b.md#one) ![picture](c.svg) and `[no](link.md)` and $[x](y)$ with [web](https://x.org/a_(b)).

## Same

```text
[no](code.md)
# no heading
```

## Same

{doc}`words <theory/x>`, {doc}`../y`, {ref}`Theorem A
<theorem-a>` {ref}`b`
"""


def test_the_reader_of_pages_finds_links_headings_and_roles_and_nothing_else():
    assert links(PAGE) == ["b.md#one", "c.svg", "https://x.org/a_(b)"]
    assert anchors(PAGE) == {"one-two34-its", "same", "same-1"}
    assert roles(PAGE, "doc") == ["theory/x", "../y"] and roles(PAGE, "ref") == [
        "theorem-a",
        "b",
    ]


def test_anchors_go_as_deep_as_the_configuration_says():
    assert f"myst_heading_anchors = {DEEPEST}\n" in read(DOCS / "conf.py")

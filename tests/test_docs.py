"""The README and the documentation: their code runs, what they name exists, and the citation is complete."""

import importlib.util
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import jaxkern
from proofs_check import register

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "atlas"} & set(page.parts)]


FOLDERS = {}
"""Where the blocks of a page run: what one has written the next may read."""
LONG = {
    f"docs/{page}.md"
    for page in ("certificates", "first_hour_rows", "many_datasets", "many_devices")
}
"""Pages whose code is slow, and calls what other pages, tests/certify, tests/jaxkern/test_ragged and scale/ call."""


def blocks():
    found_blocks = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(
            r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL
        ):
            line = text.count("\n", 0, found.start()) + 2
            name = page.relative_to(ROOT).as_posix()
            marks = [pytest.mark.slow] if name in LONG else []
            found_blocks.append(
                pytest.param(page, line, found[1], id=f"{name}:{line}", marks=marks)
            )
    return found_blocks


@pytest.mark.parametrize(("page", "line", "code"), blocks())
def test_code_blocks_run(page, line, code, few_patients, tmp_path, monkeypatch):
    monkeypatch.chdir(FOLDERS.setdefault(page, tmp_path))
    # Blank lines in front make a traceback point at the line of the page.
    exec(compile("\n" * (line - 1) + code, str(page), "exec"), {"__name__": "example"})


def test_readme_has_the_test_command_where_it_is_looked_for():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- test command -->") == 1
    command = re.search(r"<!-- test command -->\n```\n(.*)\n```\n", text)
    assert command[1] == 'python3 -m pip install ".[test]" && python3 -m pytest'
    assert (
        '\n```\npython3 -m pip install ".[check]" && python3 -m proofs_check\n```\n'
        in text
    )


def test_claims_that_pages_name_exist():
    known = {claim.id for claim in register.outlines()}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = set(
            re.findall(
                r"`(?:kpotufe2020|amini2021|chen2016|ghashami2016|jaxkern):[\w.-]+`",
                text,
            )
        )
        assert {name.strip("`") for name in named} <= known, page.name


def test_names_in_the_notation_table_exist():
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    modules = (
        "kernels",
        "gram",
        "measures",
        "rkhs",
        "features",
        "bounds.sketching",
        "bounds",
    )
    spaces = [importlib.import_module(f"jaxkern.{name}") for name in modules]
    names = set(re.findall(r"`(?:phi\.|Sigma\.)?([A-Za-z_]+)\(", text)) | {
        "KOLTCHINSKII_LOUNICI"
    }
    public = {name for space in spaces for name in dir(space)}
    methods = {
        name
        for space in spaces
        for value in vars(space).values()
        if isinstance(value, type)
        for name in dir(value)
    }
    assert {name for name in names if name not in public | methods} <= {
        "kernel",
        "phi",
        "Sigma",
    }


def test_the_api_has_a_page_for_every_public_module_as_building_the_documentation_makes_it():
    index = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    pages = runpy.run_path(str(ROOT / "docs" / "conf.py"))["api_pages"]()
    found = {
        module.name
        for module in pkgutil.walk_packages(jaxkern.__path__, "jaxkern.")
        if "._" not in module.name
    }
    assert {f"jaxkern.{name.removesuffix('.md')}" for name in pages} == found and len(
        found
    ) > 15
    for name, text in pages.items():
        assert f"](api/{name})" in index
        assert (ROOT / "docs" / "api" / name).read_text(encoding="utf-8") == text, (
            f"build the documentation: {name}"
        )


def test_citation_is_complete():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for key in (
        "cff-version",
        "message",
        "title",
        "authors",
        "version",
        "license",
        "type",
    ):
        assert re.search(rf"^{key}:", text, re.MULTILINE), key
    assert re.search(
        rf"^version: {re.escape(jaxkern.__version__)}$", text, re.MULTILINE
    )
    if importlib.util.find_spec("yaml") is not None:
        import yaml

        parsed = yaml.safe_load(text)
        assert parsed["cff-version"] == "1.2.0"
        assert parsed["authors"] == [{"name": "The jaxkern developers"}]
        assert all(
            {"type", "title", "authors"} <= set(reference)
            for reference in parsed["references"]
        )


def test_changelog_has_the_version():
    assert f"## [{jaxkern.__version__}]" in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_documentation_builds_without_a_warning(tmp_path):
    if any(
        importlib.util.find_spec(name) is None
        for name in ("sphinx", "myst_parser", "furo")
    ):
        pytest.skip(
            "sphinx, myst-parser and furo are not installed; they come with the extra [docs]"
        )
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-d",
        str(tmp_path / "trees"),
    ]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = (tmp_path / "html" / "theory" / "kpotufe2020.html").read_text(
        encoding="utf-8"
    )
    assert shown.count("<math") > 300
    outside = r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//|(?:url\(|@import)\s*["']?https?:"""
    for page in (
        path for path in tmp_path.rglob("html/**/*") if path.suffix in (".html", ".css")
    ):
        text = page.read_text(encoding="utf-8")
        assert not re.search(outside, text), f"{page.name} asks for a network"
        assert "\\" not in "".join(re.findall(r"<math.*?</math>", text, re.DOTALL)), (
            page.name
        )

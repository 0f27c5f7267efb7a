"""What is released: an sdist, the wheel made of it, and the wheel in an environment of its own."""

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]["version"]


def run(*command, cwd):
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def build(kind, source, target):
    """Build one distribution and return its path."""
    pytest.importorskip("hatchling")
    run(
        sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target, cwd=source
    )
    (found,) = target.iterdir()
    return found


def test_the_wheel_of_the_sdist_holds_every_file_and_runs(tmp_path):
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    wheel = build("wheel", source, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    paths = (
        path
        for package in ("jaxkern", "proofs_check")
        for path in (ROOT / package).rglob("*")
        if path.is_file()
    )
    assert held == {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if "__pycache__" not in path.parts
    }
    assert {"jaxkern/py.typed", "proofs_check/papers/kpotufe2020/register.toml"} <= held

    home = tmp_path / "environment"
    venv.create(home, symlinks=True)
    paths = sysconfig.get_paths("venv", vars={"base": str(home), "platbase": str(home)})
    python, site = Path(paths["scripts"], "python"), Path(paths["purelib"])
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=home,
    )
    (site / "dependencies.pth").write_text(
        sysconfig.get_path("purelib"), encoding="utf-8"
    )
    where = run(
        python,
        "-Ic",
        "import jaxkern, proofs_check as p; print(jaxkern.__version__, p.__file__)",
        cwd=home,
    )
    assert where.split()[0] == VERSION and Path(where.split()[1]).is_relative_to(site)
    assert "Theorem 1" in run(
        python, "-Im", "proofs_check", "show", "kpotufe2020:thm1", cwd=home
    )


def test_the_release_has_one_version_and_one_date():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    heading = next(line for line in changes.splitlines() if line.startswith("## ["))
    (date,) = (
        line.removeprefix("date-released: ").strip('"')
        for line in citation
        if line.startswith("date-released")
    )
    assert heading == f"## [{VERSION}] - {date}" and f"version: {VERSION}" in citation

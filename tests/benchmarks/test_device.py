"""The command for accelerators, on a CPU: what it starts and writes, and how tests start where one is asked for."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from benchmarks import device
from proofs_check import claim, register


def test_jax_is_told_the_platform_that_is_there():
    for platform, version, name in (
        ("gpu", "cuda 12090", "cuda"),
        ("gpu", "ROCM 60300", "rocm"),
        ("tpu", "", "tpu"),
    ):
        client = SimpleNamespace(platform_version=version)
        assert device.named(SimpleNamespace(platform=platform, client=client)) == name


def test_parts_exist_and_claims_are_of_every_kind():
    parts = device.commands("tpu")
    assert parts["benchmarks"] == ["benchmarks.gpu", "--platform", "tpu"]
    assert device.commands("cpu")["benchmarks"][-1] == "--small"
    for name in ("tests", "accuracy"):
        assert (device.ROOT / parts[name][-1]).exists()
    chosen = register.claims(only=device.CLAIMS.split())
    assert {type((one.corrected or one.printed).statement) for one in chosen} == set(
        claim.Statement.__args__
    ) - {claim.Undecided}


@pytest.mark.parametrize("fails", [False, True])
def test_one_report_says_what_passed_and_what_did_not(
    fails, tmp_path, monkeypatch, capsys
):
    (tmp_path / "part.py").write_text("import sys\nexec(sys.argv[1])\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tests = "import os; print(os.environ['JAX_PLATFORMS'], os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'])"
    parts = {
        "tests": tests,
        "claims": "raise SystemExit('of what\\nwent wrong')" if fails else "pass",
    }
    monkeypatch.setattr(
        device,
        "commands",
        lambda *_: {name: ["part", code] for name, code in parts.items()},
    )
    path = tmp_path / "new" / "report.md"
    assert device.main(["--output", str(path)]) == fails
    said = path.read_text()
    assert (
        "# cpu\n" in said and "found no accelerator" in said and "\ncpu false\n" in said
    )
    assert (
        "## tests: passed in " in said
        and ("## claims: FAILED with exit status 1 in " in said) == fails
    )
    assert ("```text\nof what\nwent wrong\n```" in said) == fails
    with pytest.raises(SystemExit, match="2"):
        device.main(["--output", str(path)])
    assert "exists; remove it" in capsys.readouterr().err and path.read_text() == said


@pytest.mark.parametrize(
    ("platforms", "passes", "words"),
    [
        ("", True, "1 passed"),
        ("cuda", False, "JAX_PLATFORMS=cuda,cpu, and JAX finds only a CPU"),
    ],
)
def test_tests_are_one_process_where_an_accelerator_is_asked_for(
    platforms, passes, words, tmp_path
):
    """Without a name JAX may choose one, and chooses the CPU here; where one is named that is missing, nothing runs."""
    shutil.copy(device.ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import os\n\ndef test_it(pytestconfig):\n    assert not hasattr(pytestconfig, 'workerinput')\n"
        "    assert os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] == 'false' and os.environ['JAX_PLATFORMS'] == 'cpu'\n"
    )
    command = [
        sys.executable,
        *f"-m pytest -p no:cacheprovider -n 2 -c {device.ROOT}/pyproject.toml".split(),
    ]
    environment = os.environ | {"JAX_PLATFORMS": platforms}
    found = subprocess.run(
        [*command, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = found.stdout + found.stderr
    assert words in said and (found.returncode == 0) == passes == (
        "1 passed" in said
    ), said

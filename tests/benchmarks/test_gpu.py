"""The benchmark for a GPU, on a CPU at its small sizes: everything runs, and numbers that differ are not timed."""

import json
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from benchmarks import gpu
from benchmarks._gpu_work import WORK, Work

LIMITS = (1e9, 1e8)  # operations and bytes a second


class Tensor:
    """What of a tensor of torch the benchmark needs."""

    def __init__(self, array):
        self.array = array

    def to(self, device):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.array


class Torch:
    __version__ = "0"
    from_numpy = Tensor


TORCH = (Torch, "cpu", lambda _: None)


@pytest.fixture
def doubled(monkeypatch):
    """Add work that doubles three numbers, torch by the factor that is set."""
    factor = [2.0]

    def make(small):
        def theirs(torch, to):
            return lambda: Tensor(factor[0] * to(np.ones(3)).numpy())

        return Work(6e3, 200.0, lambda: np.full(3, 2.0), theirs, lambda found: found)

    monkeypatch.setitem(gpu.WORK, "doubled", make)
    return factor


def test_the_command_measures_the_device_and_the_work_on_it(tmp_path, capsys):
    arguments = [
        "--small",
        "--tiles",
        "--platform",
        "cpu",
        "--work",
        "gram-matmul-1e5-3",
        "gradient",
    ]
    assert (
        gpu.main(
            [
                *arguments,
                "--json",
                str(tmp_path / "g.json"),
                "--table",
                str(tmp_path / "g.md"),
            ]
        )
        == 0
    )
    document = json.loads((tmp_path / "g.json").read_text())
    assert document["small"]
    assert (
        document["accelerator"]["flops"] > 0
        and document["accelerator"]["bandwidth"] > 0
    )
    assert [each["name"] for each in document["work"]] == arguments[5:]
    assert [each["side"] for each in document["tiles"]] == 3 * [gpu.SIDES[0]]
    for each in document["work"]:
        assert each["seconds"] > 0 and each["over_limit"] == pytest.approx(
            each["seconds"] / each["limit_s"]
        )
    table = (tmp_path / "g.md").read_text()
    assert table in capsys.readouterr().out and "mean nothing" in table
    assert {line.count("|") for line in table.splitlines() if line.startswith("|")} == {
        9
    }


@pytest.mark.parametrize("name", WORK)
def test_work_has_counts_and_runs(name):
    work = WORK[name](True)
    result = jax.block_until_ready(work.ours())
    assert work.operations > 0 and work.traffic > 0
    assert work.keep is None or np.isfinite(work.keep(result)).all()
    assert work.keep is None or work.theirs is not None


def test_a_limit_is_the_larger_of_two_times(doubled):
    result = gpu.run("doubled", True, LIMITS, TORCH, rounds=1, least=0.0)
    assert (
        result["limit_s"] == 6e3 / 1e9
        and result["torch_s"] > 0
        and result["difference from torch"] == 0
    )
    assert (
        gpu.run("doubled", True, (1e12, 1e8), None, rounds=1, least=0.0)["limit_s"]
        == 200 / 1e8
    )


def test_numbers_that_differ_from_those_of_torch_have_no_times(doubled):
    doubled[0] = 2.1
    result = gpu.run("doubled", True, LIMITS, TORCH, rounds=1, least=0.0)
    assert (
        "difference from torch is 0.0476" in result["error"] and "seconds" not in result
    )


def test_without_the_device_one_line_says_so(capsys):
    if jax.default_backend() != "cpu":
        pytest.skip("there is an accelerator")
    assert gpu.main([]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "no gpu" in said


def test_torch_is_used_where_it_can_use_the_device(monkeypatch):
    device = jax.devices("cpu")[0]
    monkeypatch.setitem(sys.modules, "torch", None)
    assert gpu.with_torch(device) is None
    monkeypatch.setitem(sys.modules, "torch", Torch)
    assert gpu.with_torch(device)[:2] == (Torch, "cpu")
    monkeypatch.setattr(
        Torch, "cuda", SimpleNamespace(is_available=lambda: True), raising=False
    )
    assert gpu.with_torch(SimpleNamespace(platform="tpu")) is None

"""The power study: its list, what is pinned, one mutant from end to end, and the page."""

import importlib
import inspect
import json
import os
import sys

import jax
import pytest

from jaxkern import bounds
from proofs_check.studies import __main__ as command
from proofs_check.studies import page, pins
from proofs_check.studies.mutants import Mutant, mutants, resolve, wrong_one

TOPICS = {
    topic: importlib.import_module(f"jaxkern.bounds.{topic}")
    for topic in bounds.__all__
    if topic != "Bound"
}
BOUNDS = [
    f"{topic}.{name}"
    for topic, module in TOPICS.items()
    for name in module.__all__
    if callable(getattr(module, name))
    and inspect.signature(getattr(module, name)).return_annotation
    in ("Bound", bounds.Bound)
]


def test_the_list_names_different_errors_at_three_sizes_in_what_there_is():
    listed = mutants()
    assert len({mutant.label for mutant in listed}) == len(listed) >= 84
    assert {mutant.size for mutant in listed} == {0.1, 0.03, 0.01}
    for mutant in listed:
        assert callable(getattr(*resolve(mutant.target))) and callable(
            wrong_one(mutant)
        ), mutant.label


def test_every_right_hand_side_is_pinned_and_is_what_is_pinned():
    assert {pin["bound"] for pin in pins.PINS["bounds"]} == set(BOUNDS) and len(
        BOUNDS
    ) > 100
    assert pins.wrong_formulas() == []


@pytest.mark.parametrize("name", BOUNDS)
def test_one_per_cent_of_a_right_hand_side_is_seen(name, monkeypatch):
    target, own = (
        f"jaxkern.bounds.{name.replace('.', ':')}",
        [p for p in pins.PINS["bounds"] if p["bound"] == name],
    )
    fails = any(pin["log_failure"] is not None for pin in own)
    for how in ("fields", "log_failure") if fails else ("fields",):
        monkeypatch.setattr(
            *resolve(target), wrong_one(Mutant("", target, how, 0.01, ("value",)))
        )
        assert name in pins.wrong_formulas(name)
        monkeypatch.undo()


def test_what_is_drawn_is_what_is_recorded(x64):
    with (
        jax.debug_key_reuse(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        wrong = pins.wrong_draws()
    if wrong is None:
        pytest.skip(f"no numbers are recorded for jax {jax.__version__}")
    assert wrong == []


def test_a_mutant_is_caught_and_shown(tmp_path, monkeypatch, own_precision):
    label, words = (
        "value of concentration.block_variances, 10%",
        ["studies", "power", "--output", str(tmp_path)],
    )
    monkeypatch.setattr(os, "environ", os.environ | {"JAX_PLATFORMS": "cpu"})
    monkeypatch.setattr(sys, "argv", [*words, "--only", label])
    command.main()
    (found,) = map(json.loads, (tmp_path / "power.jsonl").read_text().splitlines())
    assert found["mutant"] == label and found["pins"] is True and found["claims"] == 1
    shown = tmp_path / "page.md"
    shown.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    monkeypatch.setattr(sys, "argv", [*words, "--page", str(shown)])
    command.main()
    text = shown.read_text()
    assert (
        text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    )
    assert "| value of concentration.block_variances | 1 | " in text

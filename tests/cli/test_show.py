"""`show`: from a statement to the lines of its check, its bound and its proof."""

import re
from pathlib import Path

import pytest

from proofs_check import register
from proofs_check.cli import command, request, show
from proofs_check.usage import UsageError

ROOT = Path(__file__).resolve().parents[2]
TEN = {
    "ghashami2016 Theorem 3.2": ("ghashami2016:thm3.2", "streaming_gram"),
    "ghashami2016 Lemma 3.5": ("ghashami2016:lem3.5", "best_rank"),
    "ghashami2016 Theorem G (ours)": ("jaxkern:nystrom-spectral", "nystrom_spectral"),
    "kpotufe2020 Theorem 1": ("kpotufe2020:thm1", "inner_products"),
    "kpotufe2020 (7)": ("kpotufe2020:eq7", "cube_deviation"),
    "kpotufe2020 (10)": ("kpotufe2020:eq10", "separation_shortfall"),
    "kpotufe2020 Theorem C.2": ("kpotufe2020:thmC.2", "hilbert_mean"),
    "kpotufe2020 Lemma B.3": ("kpotufe2020:lemB.3", "conditional_sketch"),
    "chen2016 Theorem 3.1": ("chen2016:thm3.1", "success_limit"),
    "chen2016 Lemma 4.1": ("chen2016:lem4.1", "log_mgf"),
}


@pytest.fixture(scope="module")
def known():
    return register.outlines()


@pytest.mark.parametrize("place", TEN)
def test_a_place_leads_to_the_lines_of_its_check_its_bound_and_its_proof(known, place):
    name, bound = TEN[place]
    (claim,) = show.at_place(known, place)
    assert claim.id == name
    told = "\n".join(show.lines(*register.claims(only=[name])))
    found = re.findall(r"^(check|bound|proof): ([\w./]+):(\d+)(?:, (\w+))?$", told, re.MULTILINE)
    kinds = {kind for kind, *_ in found}
    assert kinds == {"check", "proof"} | ({"bound"} if bound else set())
    for kind, path, line, function in found:
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()
        near = "\n".join(text[int(line) - 1 : int(line) + 2])
        assert f"def {function}(" in near if kind != "proof" else near.startswith(("(", "#"))
    assert not bound or bound in {function for kind, *_, function in found if kind == "bound"}


def test_the_command_takes_the_words_of_a_place(monkeypatch, capsys):
    monkeypatch.setattr(request, "set_precision", lambda dtype: None)
    assert command.main(["show", "ghashami2016", "lemma  3.4"]) == 0
    by_place = capsys.readouterr().out
    assert command.main(["show", "ghashami2016:lem3.4"]) == 0
    assert capsys.readouterr().out == by_place and by_place.startswith("ghashami2016:lem3.4: ")
    assert command.main(["show", "ghashami2016 Section 1.1, Nystrom"]) == 2
    assert "several claims: ghashami2016:" in capsys.readouterr().err


def test_places_that_are_none_are_refused(known):
    with pytest.raises(UsageError, match="no statement at 'kpotufe2020 Theorem 11'"):
        show.at_place(known, "kpotufe2020 Theorem 11")
    # A theorem of another paper, and one whose number goes on.
    assert {claim.id for claim in show.at_place(known, "Theorem 3.2")} == {"ghashami2016:thm3.2"}

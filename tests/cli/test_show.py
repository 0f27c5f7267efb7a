"""`show`: from a statement to the lines of its check, its bound and its proof."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from proofs_check import register
from proofs_check.cli import command, request, show
from proofs_check.report.tex import plain
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
    found = re.findall(
        r"^(check|bound|proof): ([\w./]+):(\d+)(?:, (\w+))?$", told, re.MULTILINE
    )
    kinds = {kind for kind, *_ in found}
    assert kinds == {"check", "proof"} | ({"bound"} if bound else set())
    for kind, path, line, function in found:
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()
        near = "\n".join(text[int(line) - 1 : int(line) + 2])
        assert (
            f"def {function}(" in near
            if kind != "proof"
            else near.startswith(("(", "#"))
        )
    assert not bound or bound in {
        function for kind, *_, function in found if kind == "bound"
    }


def test_the_command_takes_the_words_of_a_place(monkeypatch, capsys):
    monkeypatch.setattr(request, "set_precision", lambda dtype: None)
    assert command.main(["show", "ghashami2016", "lemma  3.4"]) == 0
    by_place = capsys.readouterr().out
    assert command.main(["show", "ghashami2016:lem3.4"]) == 0
    assert capsys.readouterr().out == by_place and by_place.startswith(
        "ghashami2016:lem3.4: "
    )
    assert command.main(["show", "ghashami2016 Section 1.1, Nystrom"]) == 2
    assert "several claims: ghashami2016:" in capsys.readouterr().err


def test_places_that_are_none_are_refused(known):
    with pytest.raises(UsageError, match="no statement at 'kpotufe2020 Theorem 11'"):
        show.at_place(known, "kpotufe2020 Theorem 11")
    # A theorem of another paper, and one whose number goes on.
    assert {claim.id for claim in show.at_place(known, "Theorem 3.2")} == {
        "ghashami2016:thm3.2"
    }


def test_what_is_mistyped_is_answered_by_what_was_meant(capsys):
    meant = {
        "show thm1": "kpotufe2020:thm1, amini2021:thm1", "show Thm1": "kpotufe2020:thm1, amini2021:thm1",
        "show amini2020:thm1": "amini2021:thm1, kpotufe2020:thm1", "--claim kpotufe2020:thm11": "kpotufe2020:thm1",
        "list --paper kpotufe": "kpotufe2020", "show kpotufe2020 Theoem 2": "kpotufe2020 Theorem 2",
        "run --profile quik": "quick", "run --profil quick": "--profile", "shwo": "show",
    }  # fmt: skip
    for words, first in meant.items():
        assert command.main(words.split()) == 2
        assert f"did you mean {first}" in capsys.readouterr().err


def test_listing_and_mistyping_do_not_load_jax():
    code = "import sys; from proofs_check.cli.command import main; main(['list']); main(['show', 'thm99'])"
    command = [sys.executable, "-c", f"{code}; print('jax' in sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "False"


def test_formulas_are_lines_of_unicode_in_a_terminal(known):
    pytest.importorskip("latex2mathml")
    cases = {
        r"\|S^*VV^{\top}S-\Sigma^3\|\le\tfrac{3C}{n}\sqrt{s_3}": "‖S*VVᵀS−Σ³‖ ≤ (3C/n)√s₃",
        r"1-2e^{-\tau},\ d\ge4s_3\vee\tau": "1−2e^{−τ}, d ≥ 4s₃∨τ",
        r"\frac{a+b}{2cd}\ln\tfrac1\delta": "((a+b)/(2cd))ln(1/δ)",
        r"\max_{x,y\in X}\bigl|D_{\hat K}\bigr|\text{ w.p. }\binom n2": "max_{x,y∈X} |D_{K̂}| w.p. (n over 2)",
        r"\sum_{i=1}^n\mathbb E\operatorname{tr}A_i": "∑ᵢ₌₁ⁿ𝔼 tr Aᵢ",
        r"\foo x": r"\foo x", r"\sqrt[3]x": r"\sqrt[3]x", "a & b": "a & b",
    }  # fmt: skip
    assert {tex: plain(tex) for tex in cases} == cases
    formulas = [form.tex for claim in known for form in (claim, *claim.forms.values())]
    assert not [line for line in map(plain, formulas) if re.search(r"\\|\$|\(\)", line)]

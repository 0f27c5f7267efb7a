"""Every bound at numbers: what the registers transcribe of it, evaluated, and the edges of its hypotheses.

An edge is in force; it is left out if its sign has no equals sign, and known to rounding only if it has a tilde.
Ranks are whole numbers: they are tried one beside an edge, other numbers 1e-9 beside it.
"""

import inspect
from functools import partial
from typing import NamedTuple

from support import transcriptions

from jaxkern import bounds
from proofs_check import register

STEP = 1e-9
FLAGS = {"printed": "as_printed", "centered": "centered"}
KNOWN = vars(transcriptions)
"""What a transcription may use beside its symbols and arguments."""


class Case(NamedTuple):
    bound: object
    words: dict
    value: float
    failure: float
    edges: list
    """(word, sign, edge), of the hypotheses that decide: all those of other words hold."""
    symbols: set
    """The symbols that were used, with what they are."""


class Scope(dict):
    """The arguments of a bound; a symbol is evaluated where it is first used."""

    def __init__(self, words, symbols):
        super().__init__(words)
        self.symbols = symbols

    def __missing__(self, name):
        if name not in self.symbols:
            return KNOWN[name]
        self[name] = eval(self.symbols[name], self)
        return self[name]


def function_of(name):
    """Return the function of a name such as "sketching.inner_products"."""
    topic, _, function = name.partition(".")
    return getattr(getattr(bounds, topic), function)


def words_in(text):
    """Return the arguments of a text such as "eps=0.5, dim=3"."""
    return eval(f"dict({text})", dict(KNOWN))


def places(row):
    """Return the arguments of each place of a transcription."""
    parameters = inspect.signature(function_of(row.function)).parameters.values()
    required = {word.name for word in parameters if word.default is word.empty}
    shared = [
        {word: value for word, value in words_in(text).items() if word in required}
        for text in row.shared.split(";")
    ]
    changes = [words_in(text) for text in row.at.split(";")] if row.at else shared
    return [shared[0] | changes[0] | change for change in changes]


def edges_of(hypotheses, scope):
    """Return the conditions of a text such as "eps > 0; distance >= 1"."""
    parts = (
        condition.split(None, 2) for condition in hypotheses.split(";") if condition
    )
    return [(word, sign, float(eval(edge, scope))) for word, sign, edge in parts]


def holds(words, word, sign, edge):
    """Return whether a hypothesis holds at arguments; the default of an argument meets every one."""
    inside = words.get(word, edge) - edge
    if sign[0] == "<":
        inside = -inside
    return inside > 0 or (inside == 0 and (word not in words or sign.endswith("=")))


def case_of(row, bound, words):
    scope = Scope(words, row.symbols)
    value = scope["value"] = eval(row.value, scope)
    failure = eval(row.failure, scope)
    edges = edges_of(row.hypotheses, scope)
    broken = {word for word, *edge in edges if not holds(words, word, *edge)}
    alone = [edge for edge in edges if broken <= {edge[0]}]
    used = {(name, row.symbols[name]) for name in scope.keys() & row.symbols.keys()}
    return Case(bound, words, value, failure, alone, used)


def cases_of(topic):
    """Return the cases of a module; in their names " at 1" stands for the second place, and the form comes last."""
    table = {}
    for row in register.bounds():
        module, _, name = row.function.partition(".")
        if module != topic:
            continue
        bound = function_of(row.function)
        if row.form:
            bound = partial(bound, **{FLAGS[row.form]: True})
        for i, words in enumerate(places(row)):
            label = f"{name} at {i} {row.form}" if i else f"{name} {row.form}"
            table[label.strip()] = case_of(row, bound, words)
    return table


def wrong_edges(bound, words, edges):
    """Return the edges at which, just inside and just outside of which, a bound does not say what its hypotheses do."""
    wrong = []
    if isinstance(edges, str):
        edges = edges_of(edges, dict(KNOWN))
    for word, sign, edge in edges:
        step = 1 if word == "rank" else STEP * max(abs(edge), 1)
        outward = step if sign[0] == "<" else -step
        tried = [
            (edge + outward, False),
            (edge - outward, True),
            (edge, sign.endswith("=")),
        ]
        for value, allowed in tried[: 2 if sign.endswith("~") else 3]:
            if bound(**words | {word: value}).valid is not allowed:
                wrong.append((word, value, allowed))
    return wrong


TABLES = {
    topic: cases_of(topic)
    for topic in ("sketching", "fourier", "streaming", "concentration")
}

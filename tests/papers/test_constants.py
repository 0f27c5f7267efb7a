"""The constants of our theorems: every line of the tables of enclosed constants is proved, over its is_whole range."""

import ast
import pathlib
import re

import pytest

pytest.importorskip("flint")

from proofs_check.engine import enclosures
from proofs_check.papers.ghashami2016.proofs import slope

PAGES = pathlib.Path(__file__).parents[2] / "docs" / "theory"
LINE = re.compile(
    r"^\| (.*?) \| `([^`]*) ([<>]) ([^`]*)` \| ?(?:`(\w)` (\S+) to (\S+?)(?:, zero 0\^(\d))?)? ?\|",
    re.M,
)
ROWS = [
    (page.stem, *row)
    for page in sorted(PAGES.glob("*.md"))
    for row in LINE.findall(page.read_text("utf-8"))
]
NAMES = {
    f: lambda x, f=f: getattr(x, f)() for f in ("exp", "log", "sqrt", "gamma", "erfc")
}
NAMES |= {
    "chi2_above": enclosures.chi_square_tail,
    "chi2_below": enclosures.chi_square_below,
    "slope": slope,
}


class Exact(ast.NodeTransformer):
    """Numbers as balls, as they read; the ends of a `range` and is_whole powers stay what they are."""

    def visit_Constant(self, node):
        return ast.parse(f"ball('{node.value}')", mode="eval").body

    def visit_Call(self, node):
        is_range = getattr(node.func, "id", "") == "range"
        return node if is_range else self.generic_visit(node)

    def visit_BinOp(self, node):
        is_power = isinstance(node.op, ast.Pow)
        right = node.right
        if not (is_power and ast.unparse(right).lstrip("-").isalnum()):
            right = self.visit(right)
        return ast.BinOp(self.visit(node.left), node.op, right)


def evaluated(text, **variables):
    tree = ast.fix_missing_locations(Exact().visit(ast.parse(text, mode="eval")))
    known = NAMES | {
        "ball": enclosures.ball,
        "pi": 4 * enclosures.ball(1).atan(),
        "sum": lambda x: sum(x, start=0),
    }
    return eval(compile(tree, text, "eval"), known | variables)


@pytest.mark.parametrize(
    ("page", "what", "left", "sign", "right", "name", "low", "high", "order"), ROWS
)
def test_a_constant_is_enclosed(page, what, left, sign, right, name, low, high, order):
    if sign == ">":
        left, right = right, left
    if not name:
        enclosed = enclosures.at_most(lambda: (evaluated(left), evaluated(right)))
    else:
        zeros = {0: (0, int(order))} if order else None
        ends = (enclosures.ball(low), enclosures.ball(high))
        enclosed = enclosures.prove(
            lambda x: evaluated(f"{right} - ({left})", **{name: x}), [ends], zeros=zeros
        )
    assert enclosed.holds, enclosed.because


def test_no_line_of_the_tables_is_missed():
    for page in sorted(PAGES.glob("*.md")):
        _, _, table = page.read_text("utf-8").partition("\n| constant of |")
        lines = len(re.match(r"(?:.*\n)?(?:\|.*\n)*", table)[0].splitlines())
        count = sum(row[0] == page.stem for row in ROWS)
        # The first two lines are the names of columns and a rule.
        assert lines == count + 2 * bool(table)

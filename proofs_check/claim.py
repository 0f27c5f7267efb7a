"""What a claim is: frozen dataclasses, and nothing else.

A `Claim` is one numbered statement of a paper. It holds up to two forms of it, as printed and as corrected, and the
sabotaged variants (controls) that its check must reject. Each form is a *statement*, and its class says which evidence
can decide it:

=========== =================================================== ===========================================
class       what is claimed                                     how it is decided
=========== =================================================== ===========================================
Identity    an algebraic identity, or a count                   relative error against rounding
Tail        statistic <= bound with probability >= 1 - delta    violations counted, evidence at all times
Calibrated  the same up to an unnamed universal constant        quantiles of statistic / shape
Expectation the mean of a statistic is a known number           interval for every law, with a precision gate
Law         a statistic has a known distribution function       Kolmogorov-Smirnov with a resolution gate
Rate        the mean of a statistic is a power of a size        intervals of all means, on log scales
Exact       a probability is at most what is claimed            computed, no sampling
Inequality  left <= right, always                               compared at chosen inputs, up to rounding
Rare        a probability too small to count is at most so much unbiased estimates of it, limits by betting
Undecided   what no computation can decide                      the reason is stated
=========== =================================================== ===========================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import jax

    from jaxkern.bounds import Bound


USERS = "data"
"""How the name of a setting begins that is made of the user's own data."""


@dataclass(frozen=True)
class Setting:
    """One combination of data, numbers and shapes at which a claim is tried.

    `data` is a PyTree of arrays, `numbers` holds traced scalars (sample size n, sketch size d, tau, ...), and
    `shapes` holds static whole numbers. Settings that agree in shapes share one compiled trial.
    """

    name: str
    data: Any = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    shapes: Mapping[str, int] = field(default_factory=dict)


Trial = Callable[..., "jax.Array"]
"""`trial(key, data, numbers, **shapes) -> scalar`: pure, traceable, vmapped by the runner."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def sample(name: str) -> Callable[[_Function], _Function]:
    """Declare under which name a function draws.

    What is drawn depends on the seed, the id of the claim, this name and the name of the setting, so a function or a
    file can be renamed freely. A claim with a single function that draws needs no name. Two functions of one claim that
    draw need two names.
    """

    def declare(function: _Function) -> _Function:
        vars(function)["sample"] = name
        return function

    return declare


def draws_as(function: Callable[..., Any]) -> tuple[str, Any]:
    """Return the declared name of a function that draws, and what tells it from others: its code.

    Functions that a factory makes share their code, and so do partial applications and wrappers of one function.
    """
    name = getattr(function, "sample", "")
    while True:
        inner = getattr(function, "func", getattr(function, "__wrapped__", None))
        if inner is None:
            break
        function = inner
        name = name or getattr(function, "sample", "")
    return name, getattr(function, "__code__", type(function))


@dataclass(frozen=True)
class Identity:
    """An exact statement: every entry of `residual(key, setting)` is at most `tolerance * eps`, of the run's precision.

    `residual` runs on the host, once a setting. It gets the arguments that it names: `key`, `setting`, `data`, or a
    number or a shape of the setting. It returns relative errors over the inputs it tried. In float32 `tolerance` must
    leave room for less than what the controls are off by: 10^4 is 0.0012, 10^7 would be more than 1.
    """

    residual: Callable[..., Any]
    tolerance: float = 1e4


@dataclass(frozen=True)
class Tail:
    """`trial <= bound(setting).value` with probability at least `bound(setting).probability`.

    `ceiling(setting)` is the most that the statistic can ever be, where there is such a number: a bound that exceeds
    it at every setting is vacuous.
    """

    trial: Trial
    bound: Callable[[Setting], Bound]
    ceiling: Callable[[Setting], float] | None = None


@dataclass(frozen=True)
class Calibrated:
    """`trial <= C * shape(setting).value` with the stated probability, for an unnamed universal constant C.

    `lower` and `upper` are what proofs say of the smallest such C; the evidence adds the largest value needed.
    """

    trial: Trial
    shape: Callable[[Setting], Bound]
    lower: float
    upper: float


@dataclass(frozen=True)
class Expectation:
    """The mean of `trial` is `target(setting)`, to within `precision * scale(setting)`, or `at_most` that target.

    What is proved of the statistic decides how its mean is judged: `limits(setting)` returns (low, high) where it lies
    between two numbers, `moment(setting)` a number that its variance does not exceed. Either gives limits of the mean
    that hold for every such law; from an infinite upper end follows a lower limit alone. With neither, draws decide
    nothing: a rare event could hide any mean.
    """

    trial: Trial
    target: Callable[[Setting], float]
    scale: Callable[[Setting], float]
    precision: float = 0.05
    limits: Callable[[Setting], tuple[float, float]] | None = None
    moment: Callable[[Setting], float] | None = None
    at_most: bool = False


@dataclass(frozen=True)
class Law:
    """`trial` has the distribution function `cdf`, a vectorised function on the host, to within `width` everywhere."""

    trial: Trial
    cdf: Callable[[Any], Any]
    width: float = 0.02


@dataclass(frozen=True)
class Rate:
    """The mean of `trial` behaves like `size ** exponent`: their ratio varies by at most (largest / smallest) ** width.

    The settings of one run share their data and differ in `numbers[size]`, over at least five values. `limits` and
    `moment` are those of an `Expectation`, at each size.
    """

    trial: Trial
    size: str
    exponent: float
    width: float = 0.1
    limits: Callable[[Setting], tuple[float, float]] | None = None
    moment: Callable[[Setting], float] | None = None


@dataclass(frozen=True)
class Exact:
    """A probability is at most what is claimed: `probability(setting)` returns (log probability, log claimed).

    It gets the arguments that it names, as for an Identity.

    A setting where the event cannot happen (minus infinity) says nothing, unless that is what is claimed.
    """

    probability: Callable[..., tuple[float, float]]


@dataclass(frozen=True)
class Inequality:
    """A deterministic inequality: `left <= bound.value` in every pair (left, bound) of `sides(key, setting)`.

    `sides` runs on the host, once a setting, with the arguments that it names, as for an Identity. It returns a pair
    for every input it tries. Its bounds hold always. Both sides are in units in which 1 is a natural size: |A|_F^2, or
    n for a Gram matrix of n points. Rounding is allowed for up to `tolerance * eps(dtype) * max(1, |bound.value|)`. If
    they are `relative` they may have any size, and the larger magnitude of the two takes the place of the maximum.
    """

    sides: Callable[..., Sequence[tuple[float, Bound]]]
    tolerance: float = 1e4
    relative: bool = False


@dataclass(frozen=True)
class Rare:
    """A probability is at most `exp(log_claimed(setting))`, which is too small for counting.

    `trial` returns unbiased estimates of the probability over `exp(log_ceiling(setting))`, each in [0, 1]: the
    weight of a draw from a tilted law where the event occurs and zero elsewhere, or a conditional probability.
    `proofs_check.engine.tilting` makes such trials.
    """

    trial: Trial
    log_claimed: Callable[[Setting], float]
    log_ceiling: Callable[[Setting], float]


@dataclass(frozen=True)
class Undecided:
    """What no computation can decide: an existence, a lower bound over all maps, an order of growth without constants.

    `reason` says why, and which claims check a consequence that can be decided. Such a form has no settings.
    """

    reason: str


Statement = (
    Identity
    | Tail
    | Calibrated
    | Expectation
    | Law
    | Rate
    | Exact
    | Inequality
    | Rare
    | Undecided
)


@dataclass(frozen=True)
class Enclosed:
    """What ball arithmetic says of a form: whether the statement `holds`, computed with so many `digits`, and how."""

    holds: bool
    digits: int
    because: str


@dataclass(frozen=True)
class Form:
    """One form of a claim: the statement, and where it is tried.

    The register adds the verdict that is expected, and `enclosed`, which proves or disproves the statement: by an
    enclosed counterexample, over its whole range, or, for an Exact, at all its settings.
    """

    statement: Statement
    settings: tuple[Setting, ...] = ()
    expect: str = ""
    tex: str = ""
    enclosed: Callable[[], Enclosed] | None = None


@dataclass(frozen=True)
class Control:
    """A sabotaged variant that the check must reject; `kind` is one of `proofs_check.controls.KINDS`."""

    name: str
    statement: Statement
    settings: tuple[Setting, ...]
    kind: str = "other"


@dataclass(frozen=True, kw_only=True)
class Check:
    """What is computed for a claim: its forms, as printed and as corrected, and the controls that it must reject."""

    printed: Form | None = None
    corrected: Form | None = None
    controls: tuple[Control, ...] = ()

    @property
    def forms(self) -> dict[str, Form]:
        """Return the forms that there are, by the names "printed" and "corrected"."""
        both = {"printed": self.printed, "corrected": self.corrected}
        return {name: form for name, form in both.items() if form is not None}


KINDS = (
    "identity",
    "inequality",
    "tail bound",
    "lower bound",
    "expectation",
    "law",
    "limit in law",
    "rate",
    "cost",
    "algorithm guarantee",
    "assumption",
)
"""What a claim says, in one word or two."""
LOOSE = 20.0
"""A corrected statement whose smallest slack is more than this says little."""
SEVERITIES = (
    "false as stated",
    "a hypothesis is missing",
    "a step of a proof",
    "a slip",
)
"""What is wrong with a printed statement, the gravest first."""


@dataclass(frozen=True, kw_only=True)
class Claim(Check):
    """One statement of a paper: what the register says of it, and its check.

    `tex` is the formula as printed, `because` why the verdicts are what they are. `hypotheses` says in words, with
    formulas between dollar signs, what is assumed; the settings meet it. A `marginal` claim is a step of a proof, a
    remark or a fact in passing, which only a run of all claims executes. `section` is the heading above it, and
    `symbols` are pairs of a symbol in its formulas, in TeX, and what it means. `says` is the printed statement in words
    where it is in the errata, `severity` one of `SEVERITIES`, or `follows` the id of the claim whose mistake makes this
    one wrong, too; `loose` says why no setting of the corrected form is sharper where its smallest slack exceeds
    `LOOSE`; `proof` is the place in the documentation where the corrected form is proved (Markdown), and `check` is
    `module:function` of the code. `target` is what the adversary searches, a `proofs_check.engine.adversary.Target`, of
    a claim that is in no paper.
    """

    id: str
    paper: str
    where: str
    kind: str
    tex: str
    because: str
    hypotheses: str = ""
    title: str = ""
    marginal: bool = False
    section: str = ""
    symbols: tuple[tuple[str, str], ...] = ()
    says: str = ""
    severity: str = ""
    follows: str = ""
    loose: str = ""
    proof: str = ""
    check: str = ""
    target: Any = None


@dataclass(frozen=True)
class Evidence:
    """What was seen at one setting."""

    setting: str
    trials: int
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What the evidence says of one form: the status, the slack, and the numbers behind them.

    `slack` is the bound over the (1 - delta)-quantile of what it bounds, or what is claimed over what is found: the
    smallest over the settings (nan where there is none); the facts `slack_median` and `slack_largest` are beside it.
    `facts` holds what a reader needs to judge the verdict; `alpha` is the error rate it was given.
    """

    status: str
    because: str
    slack: float
    alpha: float
    evidence: tuple[Evidence, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

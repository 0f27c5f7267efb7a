"""ghashami2016, Section 3: the Frobenius error of streaming kernel PCA cut to rank k, by Theorems E and F."""

import math
from dataclasses import replace
from typing import Any

from jaxkern.bounds import Bound, streaming
from proofs_check import controls
from proofs_check.claim import Calibrated, Check, Control, Form, Tail
from proofs_check.papers.ghashami2016 import clouds, trials
from proofs_check.papers.ghashami2016.setup import Inputs
from proofs_check.papers.shared import bound_of

SOURCE = "ghashami2016, Section 3"


def _cut_to_rank(*, eps: Any, size: Any, n: Any, rows: Any, rank: Any) -> Bound:
    """Return the spectral bound of Theorem 3.2 for the stream, carried to the best approximation by Lemma 3.5."""
    spectral = streaming.streaming_gram(
        eps=eps, num_features=size, num_points=n, sketch_size=rows
    )
    right = streaming.best_rank(tail=0.0, spectral=spectral.value, rank=rank)
    return replace(spectral, value=right.value, source=SOURCE)


def _order(*, n: float, delta: float, size: float, rows: float, rank: float) -> Bound:
    """Return eps sqrt(k) where half of eps is the root of log(n / delta) / m and half of it is 1 / l."""
    eps = math.sqrt(math.log(n / delta) / size) + 1 / rows
    return Bound(math.sqrt(rank) * eps, 1 - delta, n >= 2 * delta, SOURCE)


def frobenius_stream(inputs: Inputs) -> Check:
    # The larger cluster comes last, so that it is the first direction of G.
    cloud = clouds.clusters(12, 116)
    bound = bound_of(_cut_to_rank)
    sizes = {"rows": 64, "shrink_at": 32, "rank": 1}
    data = cloud.with_tail(1, spectral=False)
    settings = tuple(
        replace(setting, name=f"{setting.name}, k=1", data=data)
        for setting in inputs.sized(bound, cloud, 0.12, sizes)
    )
    tail = Tail(trials.stream_rank_excess, bound)
    shape = bound_of(_order)
    calibrated = Calibrated(trials.stream_rank_excess, shape, 0.0, 4 * math.sqrt(5))
    first = {"seen": 12.0}
    dropped = controls.changed(settings[:1], "the first cluster seen", numbers=first)
    return Check(
        printed=Form(calibrated, settings),
        corrected=Form(tail, settings),
        controls=(Control("the last rows dropped", tail, dropped, "rows dropped"),),
    )

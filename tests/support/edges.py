"""Hypotheses of bounds as text, and the numbers at, just inside and just outside of every edge."""

STEP = 1e-9


def edges(conditions):
    """Yield (word, value, whether it is allowed) for conditions such as "eps > 0, eps < 1, distance >= 1".

    The edge of ">~" and "<~" is known to rounding only, and is not asked for.
    """
    for condition in conditions.split(", "):
        word, sign, edge = condition.split()
        edge = float(edge)
        outward = (1 if sign[0] == "<" else -1) * STEP * max(abs(edge), 1)
        if not sign.endswith("~"):
            yield word, edge, sign.endswith("=")
        yield word, edge + outward, False
        yield word, edge - outward, True


def wrong_edges(bound, words, conditions):
    """Return the edges at which a bound does not say of itself what the conditions do."""
    return [
        (word, value, allowed)
        for word, value, allowed in edges(conditions)
        if bound(**words | {word: value}).valid is not allowed
    ]

"""Walk the jaxprs of traced programs: what tests say about memory, precision and dtypes without running anything."""

import jax
import jax.numpy as jnp

HIGHEST = jax.lax.Precision.HIGHEST


def equations(jaxpr):
    """Yield every equation anywhere in a jaxpr, loops, branches and calls included."""
    for equation in jaxpr.eqns:
        yield equation
        nested = jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda v: hasattr(v, "jaxpr")
        )
        for value in nested:
            value = getattr(value, "jaxpr", value)
            if hasattr(value, "eqns"):
                yield from equations(value)


def intermediates(function, *args):
    """Yield the abstract value of every array that `function(*args)` computes."""
    for equation in equations(jax.make_jaxpr(function)(*args).jaxpr):
        for out in equation.outvars:
            if hasattr(out.aval, "shape"):
                yield out.aval


def largest_intermediate(function, *args):
    """Return the number of elements of the largest array that `function(*args)` computes."""
    return max(aval.size for aval in intermediates(function, *args))


def imprecise(jaxpr):
    """Return the matrix products that do not ask for the full precision of their dtype."""
    products = (e for e in equations(jaxpr) if e.primitive.name == "dot_general")
    return [
        e
        for e in products
        if e.params["precision"] not in (HIGHEST, (HIGHEST, HIGHEST))
    ]


def doubles(jaxpr):
    """Return what a program computes in float64; a scalar written in the source is weak and takes any dtype."""
    avals = [out.aval for e in equations(jaxpr) for out in e.outvars]
    wide = [aval for aval in avals if getattr(aval, "dtype", None) == jnp.float64]
    return [aval for aval in wide if aval.shape or not aval.weak_type]

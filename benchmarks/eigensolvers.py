"""Time of the partial eigensolver against a full decomposition, on Gaussian Gram matrices of normal points.

Prints for each cell the median times, their ratio, the products that were needed, the largest difference of eigenvalues
over the largest eigenvalue, whether the iteration converged within the products that `leading_eigh` allows, and whether
`prefers_partial` chooses it. With --matrix-free instead: seconds and products without the matrix, for a Gaussian and a
distance kernel. Set OPENBLAS_NUM_THREADS=1 where other programs run: its threads wait for each other.
"""

import argparse
import statistics
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import linalg as solvers
from jaxkern.gram import gram, gram_matmul
from jaxkern.kernels import Distance, Gaussian
from jaxkern.linalg import eigh, matmul

DIM = 5


def seconds(function, *args, repeats):
    """Return the median time of a compiled function and what it returns."""
    result, times = jax.block_until_ready(function(*args)), []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


@partial(jax.jit, static_argnames="num_values")
def few(A, num_values):
    start = solvers.start_block(A.shape[0], num_values, A.dtype)
    limit = solvers.dense_restarts(*start.shape)
    return solvers.largest_eigenpairs(lambda V: matmul(A, V), start, num_values=num_values, max_restarts=limit)


@partial(jax.jit, static_argnames="num_values")
def few_without_matrix(kernel, X, num_values):
    start = solvers.start_block(X.shape[0], num_values, X.dtype)
    product = partial(gram_matmul, kernel, X, None)
    return solvers.largest_modulus_eigenpairs(product, start, num_values=num_values)


def dense(options):
    full = jax.jit(eigh)
    print("   dtype     n scale   k      full       few  ratio products    error ok rule")
    for dtype in options.dtypes:
        for n in options.sizes:
            X = jnp.asarray(np.random.default_rng(n).normal(size=(n, DIM)), dtype)
            for lengthscale in options.lengthscales:
                K = gram(Gaussian(lengthscale), X)
                whole, (values, _) = seconds(full, K, repeats=options.repeats)
                for k in options.values:
                    if k >= n:
                        continue
                    time_few, found = seconds(few, K, k, repeats=options.repeats)
                    error = float(jnp.max(jnp.abs(found.values - values[:k])) / values[0])
                    print(
                        f"{dtype:>8} {n:5d} {lengthscale:5.1f} {k:3d} {1e3 * whole:7.1f}ms {1e3 * time_few:7.1f}ms "
                        f"{time_few / whole:6.3f} {int(found.num_products):8d} {error:8.1e} "
                        f"{'y' if found.converged else 'n':>2} {'few' if solvers.prefers_partial(n, k) else 'full'}",
                        flush=True,
                    )


def matrix_free(options):
    for dtype in options.dtypes:
        for n in options.sizes:
            X = jnp.asarray(np.random.default_rng(n).normal(size=(n, 10)), dtype)
            for kernel in (Gaussian(3.0), Gaussian(1.0), Distance()):
                for k in options.values:
                    start = time.perf_counter()
                    found = jax.block_until_ready(few_without_matrix(kernel, X, k))
                    print(
                        f"{dtype:>8} n={n} {type(kernel).__name__} {getattr(kernel, 'lengthscale', '')} k={k}: "
                        f"{time.perf_counter() - start:.1f} s with compilation, {int(found.num_products)} products, "
                        f"converged {bool(found.converged)}, largest residual / |K| "
                        f"{float(jnp.max(found.residuals) / jnp.max(jnp.abs(found.values))):.1e}",
                        flush=True,
                    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=(200, 500, 1000, 2000, 5000))
    parser.add_argument("--values", type=int, nargs="+", default=(2, 10, 40))
    parser.add_argument("--lengthscales", type=float, nargs="+", default=(0.4, 1.0, 3.0))
    parser.add_argument("--dtypes", nargs="+", default=("float32", "float64"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--matrix-free", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", "float64" in options.dtypes)
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}")
    (matrix_free if options.matrix_free else dense)(options)


if __name__ == "__main__":
    main()

"""Sizes at which one method overtakes another: `python -m benchmarks.crossovers fastfood | eigensolvers | matrix-free`.

fastfood      `features.fastfood` against `features.paired_fourier`, mapping float32 points over dimensions: nanoseconds
              of a frequency of a point, quartiles of the ratios of adjacent timings, and the numbers that are kept
eigensolvers  the partial eigensolver against a full decomposition of Gaussian Gram matrices: median times, products,
              the largest difference of eigenvalues over the largest, and what `linalg.prefers_partial` chooses
matrix-free   the partial eigensolver by products without the matrix, for a Gaussian and a distance kernel

Methods take turns, so that what slows the machine down slows both. Set OPENBLAS_NUM_THREADS=1 where other programs run:
its threads wait for each other.
"""

import argparse
import statistics
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels, linalg
from jaxkern.gram import gram, gram_matmul

WORK = 2**20
"""Frequencies times points of one call."""


def turns(calls, repeats):
    """Return the results of the calls and their times, (repeats, calls), after one round that compiles."""
    results, times = [jax.block_until_ready(call()) for call in calls], []
    for _ in range(repeats):
        row = []
        for call in calls:
            start = time.perf_counter()
            jax.block_until_ready(call())
            row.append(time.perf_counter() - start)
        times.append(row)
    return results, np.array(times)


def fastfood(options):
    print(
        f"{'dim':>5} {'m':>6} {'fastfood ns':>12} {'paired ns':>10} {'ratio':>6} {'quartiles':>13} {'memory':>7}"
    )
    call = jax.jit(lambda phi, X: phi(X))
    for dim in options.dims:
        for m in options.num_frequencies or sorted({dim, 4 * dim, 8192}):
            draw_key, data_key = jax.random.split(jax.random.key(dim))
            X = jax.random.normal(data_key, (max(WORK // m, 32), dim), jnp.float32)
            maps = [
                draw(
                    draw_key,
                    kernels.Gaussian(dim**0.5),
                    dim,
                    num_frequencies=m,
                    dtype=jnp.float32,
                )
                for draw in (features.fastfood, features.paired_fourier)
            ]
            _, times = turns([partial(call, phi, X) for phi in maps], options.repeats)
            fast, dense = 1e9 * np.median(times, axis=0) / (len(X) * m)
            low, ratio, high = statistics.quantiles(times[:, 0] / times[:, 1], n=4)
            first, second = (
                sum(leaf.size for leaf in jax.tree.leaves(phi)) for phi in maps
            )
            quartiles = f"{low:.2f}-{high:.2f}"
            print(
                f"{dim:5} {m:6} {fast:12.1f} {dense:10.1f} {ratio:6.2f} {quartiles:>13} {first / second:7.4f}",
                flush=True,
            )


@partial(jax.jit, static_argnames="num_values")
def few(A, num_values):
    start = linalg.start_block(A.shape[0], num_values, A.dtype, extra=2)
    limit = linalg.dense_restarts(*start.shape)
    product = partial(linalg.matmul, A)
    return linalg.largest_eigenpairs(
        product, start, num_values=num_values, max_restarts=limit
    )


@partial(jax.jit, static_argnames="num_values")
def few_without_matrix(kernel, X, num_values):
    start = linalg.start_block(X.shape[0], num_values, X.dtype)
    return linalg.largest_modulus_eigenpairs(
        partial(gram_matmul, kernel, X, None), start, num_values=num_values
    )


def normal_points(options, dim):
    """Yield dtypes, sizes and points."""
    jax.config.update("jax_enable_x64", "float64" in options.dtypes)
    for dtype in options.dtypes:
        for n in options.sizes:
            yield (
                dtype,
                n,
                jnp.asarray(np.random.default_rng(n).normal(size=(n, dim)), dtype),
            )


def eigensolvers(options):
    full = jax.jit(linalg.eigh)
    print(
        "   dtype     n scale   k      full       few  ratio products    error ok rule"
    )
    for dtype, n, X in normal_points(options, 5):
        for lengthscale in options.lengthscales:
            K = gram(kernels.Gaussian(lengthscale), X)
            for k in (k for k in options.values if k < n):
                ((values, _), pairs), times = turns(
                    [partial(full, K), partial(few, K, k)], options.repeats
                )
                whole, part = 1e3 * np.median(times, axis=0)
                error = float(jnp.max(jnp.abs(pairs.values - values[:k])) / values[0])
                print(
                    f"{dtype:>8} {n:5d} {lengthscale:5.1f} {k:3d} {whole:7.1f}ms {part:7.1f}ms "
                    f"{part / whole:6.3f} {int(pairs.num_products):8d} {error:8.1e} "
                    f"{'y' if pairs.converged else 'n':>2} {'few' if linalg.prefers_partial(n, k) else 'full'}",
                    flush=True,
                )


def matrix_free(options):
    for dtype, n, X in normal_points(options, 10):
        for kernel in (
            kernels.Gaussian(3.0),
            kernels.Gaussian(1.0),
            kernels.Distance(),
        ):
            for k in options.values:
                start = time.perf_counter()
                pairs = jax.block_until_ready(few_without_matrix(kernel, X, k))
                residual = float(
                    jnp.max(pairs.residuals) / jnp.max(jnp.abs(pairs.values))
                )
                print(
                    f"{dtype:>8} n={n} {type(kernel).__name__} {getattr(kernel, 'lengthscale', '')} k={k}: "
                    f"{time.perf_counter() - start:.1f} s with compilation, {int(pairs.num_products)} products, "
                    f"converged {bool(pairs.converged)}, largest residual / |K| {residual:.1e}",
                    flush=True,
                )


def main():
    parser = argparse.ArgumentParser(
        "python -m benchmarks.crossovers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    methods = {
        "fastfood": fastfood,
        "eigensolvers": eigensolvers,
        "matrix-free": matrix_free,
    }
    parser.add_argument("what", choices=methods)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--dims", type=int, nargs="+", default=(8, 32, 128, 256, 512, 2048, 4096)
    )
    parser.add_argument(
        "--num-frequencies", type=int, nargs="+", help="by default dim, 4 dim and 8192"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=(200, 500, 1000, 2000, 5000)
    )
    parser.add_argument("--values", type=int, nargs="+", default=(2, 10, 40))
    parser.add_argument(
        "--lengthscales", type=float, nargs="+", default=(0.4, 1.0, 3.0)
    )
    parser.add_argument("--dtypes", nargs="+", default=("float32", "float64"))
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}")
    methods[options.what](options)


if __name__ == "__main__":
    main()

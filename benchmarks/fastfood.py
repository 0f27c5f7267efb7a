"""Time of `fastfood` against `paired_fourier`: mapping a batch of float32 points, both compiled, over dimensions.

Prints for each cell the median time of one frequency of one point in nanoseconds, and the median of the ratios of
adjacent timings: the two maps take turns, so that what slows the machine down slows both.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp

from jaxkern import features, kernels

DIMS = (8, 32, 128, 256, 512, 2048, 4096)
WORK = 2**20
"""Frequencies times points of one call."""


def seconds(function, *args):
    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - start


def held(phi):
    """Return how many numbers a map keeps."""
    return sum(leaf.size for leaf in jax.tree.leaves(phi))


def compare(dim, num_frequencies, repeats):
    """Return nanoseconds of both maps, the quartiles of the ratios fastfood / paired, and the ratio of memory."""
    draw_key, data_key = jax.random.split(jax.random.key(dim))
    X = jax.random.normal(data_key, (max(WORK // num_frequencies, 32), dim), jnp.float32)
    kernel = kernels.Gaussian(dim**0.5)
    maps = [
        make(draw_key, kernel, dim, num_frequencies=num_frequencies, dtype=jnp.float32)
        for make in (features.fastfood, features.paired_fourier)
    ]
    call = jax.jit(lambda phi, X: phi(X))
    for phi in maps:
        seconds(call, phi, X)
    times = [[seconds(call, phi, X) for phi in maps] for _ in range(repeats)]
    nanoseconds = [1e9 * statistics.median(column) / (len(X) * num_frequencies) for column in zip(*times, strict=True)]
    ratios = statistics.quantiles([fast / dense for fast, dense in times], n=4)
    return nanoseconds, ratios, held(maps[0]) / held(maps[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dims", type=int, nargs="+", default=DIMS)
    parser.add_argument("--num-frequencies", type=int, nargs="+", help="by default dim, 4 dim and 8192")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}, float32")
    print(f"{'dim':>5} {'m':>6} {'fastfood ns':>12} {'paired ns':>10} {'ratio':>6} {'quartiles':>13} {'memory':>7}")
    for dim in options.dims:
        for m in options.num_frequencies or sorted({dim, 4 * dim, 8192}):
            (fast, dense), (low, ratio, high), memory = compare(dim, m, options.repeats)
            quartiles = f"{low:.2f}-{high:.2f}"
            print(f"{dim:5} {m:6} {fast:12.1f} {dense:10.1f} {ratio:6.2f} {quartiles:>13} {memory:7.4f}", flush=True)


if __name__ == "__main__":
    main()

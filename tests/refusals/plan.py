"""What `jaxkern.plan` refuses."""

import numpy as np

from jaxkern import kernels, plan

GOAL = {"eps": 0.1, "delta": 0.1}
POPULATION = {"kappa": 1.0, "op_norm": 0.5, "trace": 1.0, "trace3": 0.15}
POPULATION |= {"hs_norm": 0.6}
BALL = {"num_points": None, "dim": 2, "diameter": 1.0}


def pairs(squared_distances, counts):
    return {"squared_distances": squared_distances, "pairs": counts}


def fourier():
    return plan.fourier, GOAL | {"num_points": 3}


def kernel_values():
    return plan.kernel_values, GOAL | pairs([1.0], [1])


def streaming():
    return plan.streaming, GOAL


def kernel_jl():
    return plan.kernel_jl, GOAL | POPULATION


def kernel_jl_functions():
    return plan.kernel_jl, GOAL | {"num_functions": 3}


def nystrom():
    return plan.nystrom, GOAL


def pivoted_cholesky():
    return plan.pivoted_cholesky, {"eps": 0.1, "eigenvalues": [1.0]}


def memory():
    return plan.memory, {"dim": 2, "num_features": 4}


PLANNERS = (fourier, kernel_values, streaming, kernel_jl, nystrom, pivoted_cholesky)
REFUSED = [
    *((planner, {"eps": 0.0}, "eps must be") for planner in PLANNERS),
    *((planner, {"delta": 1.0}, "delta must be") for planner in PLANNERS),
    (fourier, {"num_points": None}, "num_points must be given"),
    (fourier, {"diameter": 3.0}, "dim and diameter must be given together"),
    (fourier, {"num_points": 0}, "num_points must be at least 1, got 0"),
    (fourier, BALL | {"dim": 0}, "dim must be at least 1, got 0"),
    (fourier, BALL | {"diameter": -1.0}, "diameter must be positive"),
    (fourier, {"kernel": kernels.Cauchy(1.0)}, "must be kernels.Gaussian"),
    (fourier, {"kernel": kernels.Matern52(1.0)}, "with dim and diameter alone"),
    (fourier, {"kernel": kernels.Laplacian(1.0)}, "by Theorem N of"),
    (fourier, BALL | {"kernel": kernels.Exponential(1.0)}, "by Theorem N of"),
    (fourier, {"eps": 1e-9}, "eps and delta must be larger: no size below 2.53"),
    (fourier, {"pairs": [1]}, "squared_distances and pairs must be given together"),
    (fourier, pairs([1.0], [1, 2]), r"pairs must have the shape .*\(1,\)"),
    (fourier, pairs(["a"], [1]), "squared_distances must be a vector"),
    (fourier, pairs([1.0], [-1]), "pairs must be a vector of finite numbers"),
    (
        kernel_values,
        {"farthest": [0.5]},
        "farthest must be at least squared_distances, got a smaller one",
    ),
    (streaming, {"eps": 1e-16}, "eps must be larger: no size below"),
    (streaming, {"sketch_size": 9}, "sketch_size must exceed 1 / eps - 1 = 9"),
    (streaming, {"num_points": 0}, "num_points must be at least 1, got 0"),
    (kernel_jl, dict.fromkeys(POPULATION), "kappa must be given: .* none of them"),
    (kernel_jl, {"op_norm": None}, "op_norm must be given"),
    (kernel_jl_functions, {"kappa": 1.0}, "num_functions must be given alone"),
    (kernel_jl_functions, {"num_functions": 0}, "num_functions must be at least 1"),
    (kernel_jl, {"trace": -1.0}, "trace must be positive"),
    (kernel_jl, {"trace": np.ones(2)}, "trace must be a positive number"),
    (
        kernel_jl,
        {"kappa": 0.9},
        "trace <= kappa must hold.*trace=1, .*norms of the covariance operator",
    ),
    (kernel_jl, {"trace3": 0.1}, "op_norm .* op_norm <= trace3 must hold"),
    (kernel_jl, {"eps": 1e-9}, "no statement reaches eps=1e-09 with fewer than 2"),
    (kernel_jl, {"num_landmarks": 100}, "num_landmarks must be larger"),
    (kernel_jl, {"centered": 1}, "centered must be True or False"),
    (pivoted_cholesky, {"eigenvalues": [0.0]}, "eigenvalues must have a positive sum"),
    (pivoted_cholesky, {"trace": 0.5}, "eigenvalues must have .* at most the trace"),
    (pivoted_cholesky, {"eigenvalues": [-1.0]}, "eigenvalues must be a vector of"),
    (pivoted_cholesky, {"rank": 2}, "rank must be at most 1"),
    (
        pivoted_cholesky,
        {"delta": 0.5, "eigenvalues": [0.9], "trace": 1.0},
        "eigenvalues must be more, or eps and delta larger: they leave out 0.1 of 1",
    ),
    (memory, {"dim": 0}, "dim must be at least 1, got 0"),
    (memory, {"num_features": 3}, "num_features must be even"),
    (memory, {"itemsize": 2}, "itemsize must be 4"),
]

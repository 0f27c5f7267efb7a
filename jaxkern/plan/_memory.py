"""How many bytes a map, its features and a stream take."""

from jaxkern import checks
from jaxkern.plan._plan import Plan


def memory(
    *,
    dim: int,
    num_features: int,
    num_points: int = 0,
    num_landmarks: int | None = None,
    sketch_size: int | None = None,
    itemsize: int = 4,
) -> Plan:
    """Count the bytes of a feature map, of the features of a dataset, and of a stream.

    Parameters
    ----------
    dim : dimension of the points.
    num_features : features per point; an even number without num_landmarks.
    num_points : points whose features are held at once.
    num_landmarks : landmarks, for a map that is made of them (`nystrom`, `kernel_jl`, `kernel_pca`): it holds
        num_landmarks (dim + num_features) numbers. Without it the map is `paired_fourier`, num_features / 2 rows.
    sketch_size : rows of a stream's sketch, whose buffer has 2 sketch_size num_features numbers.
    itemsize : bytes per number: 4 for float32, 8 for float64.

    Returns
    -------
    Plan with map_bytes, feature_bytes, sketch_bytes (0 without a sketch) and total_bytes, arrays only.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.memory(dim=10, num_features=1000, num_points=10**6).feature_bytes
    4000000000
    """
    d = checks.count("dim", dim)
    m = checks.count("num_features", num_features)
    n = checks.count("num_points", num_points, minimum=0)
    size = checks.count("itemsize", itemsize)
    if size not in (4, 8):
        raise ValueError(f"itemsize must be 4 (float32) or 8 (float64), got {size}")
    landmarks = (
        None if num_landmarks is None else checks.count("num_landmarks", num_landmarks)
    )
    if landmarks is None and m % 2:
        raise ValueError(
            f"num_features must be even for paired Fourier features, got {m}; or pass num_landmarks"
        )
    held = m // 2 * d if landmarks is None else landmarks * (d + m)
    rows = None if sketch_size is None else checks.count("sketch_size", sketch_size)
    map_bytes, feature_bytes, sketch_bytes = (
        size * held,
        size * n * m,
        size * 2 * (rows or 0) * m,
    )
    return Plan(
        source="array sizes",
        num_frequencies=m // 2 if landmarks is None else None,
        num_features=m,
        num_landmarks=landmarks,
        sketch_size=rows,
        map_bytes=map_bytes,
        feature_bytes=feature_bytes,
        sketch_bytes=sketch_bytes,
        total_bytes=map_bytes + feature_bytes + sketch_bytes,
    )

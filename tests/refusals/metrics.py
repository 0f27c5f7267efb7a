"""What `jaxkern.metrics` refuses."""

import numpy as np

from jaxkern import metrics

LABELS = np.array([0, 1, 2])
SQUARE = np.eye(3, dtype=np.float32)


def rand_index():
    return metrics.rand_index, {"labels_true": LABELS, "labels_pred": LABELS}


def adjusted_rand_index():
    return metrics.adjusted_rand_index, rand_index()[1]


def normalized_mutual_info():
    return metrics.normalized_mutual_info, rand_index()[1]


def misclassification_rate():
    return metrics.misclassification_rate, rand_index()[1]


def spectral_error():
    return metrics.spectral_error, {"K": SQUARE, "Khat": SQUARE}


def frobenius_error():
    return metrics.frobenius_error, {"K": SQUARE, "Khat": SQUARE}


LABELINGS = (
    ({"labels_true": SQUARE[0]}, "labels_true must hold integer labels"),
    ({"labels_pred": LABELS[:2]}, r"labels_pred must have shape \(3,\)"),
    ({"labels_true": LABELS[:, None]}, "labels_true must have shape"),
)
MATRICES = (
    ({"K": SQUARE[:2]}, "K must be a square matrix"),
    ({"Khat": SQUARE[0]}, "Khat must be a square matrix"),
    ({"Khat": SQUARE[:2, :2]}, "Khat must have the shape of K"),
    ({"Khat": np.eye(3)}, "Khat must have the dtype of K"),
)
FEW = "num_labels must be at least the number of distinct labels, 3, got 2"
REFUSED = [
    *((rand_index, *row) for row in LABELINGS),
    *((adjusted_rand_index, *row) for row in LABELINGS),
    *((normalized_mutual_info, *row) for row in LABELINGS),
    *((misclassification_rate, *row) for row in LABELINGS),
    *((spectral_error, *row) for row in MATRICES),
    *((frobenius_error, *row) for row in MATRICES),
    (rand_index, {"labels_true": LABELS[:0]}, "labels_true must have shape"),
    (misclassification_rate, {"num_labels": 2, "labels_pred": 0 * LABELS}, FEW),
    (misclassification_rate, {"num_labels": 2, "labels_true": 0 * LABELS}, FEW),
]

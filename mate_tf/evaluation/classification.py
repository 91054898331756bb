"""How well sequences are classified.

Shapes: N examples.
"""

from collections.abc import Sequence

import numpy as np


def classification_metrics(
    predictions: Sequence[int] | np.ndarray, labels: Sequence[int] | np.ndarray
) -> dict[str, float]:
    """Accuracy, precision and F1, the last two by class and averaged by the classes' sizes.

    Args:
        predictions: N classes.
        labels: N classes.

    Returns:
        "accuracy", "precision" and "f1", from 0 to 1 (grammar-guided attention paper,
        section 4.4). The precision of a class that is never predicted counts as 0.

    Raises:
        ValueError: if there are none, or not as many of the one as of the other.
    """
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    if not len(labels):
        raise ValueError("expected at least 1 label, got 0")
    precision, _, f1, _ = precision_recall_fscore_support(
        labels, predictions, average="weighted", zero_division=0.0
    )
    return {
        "accuracy": float(accuracy_score(labels, predictions)),
        "precision": float(precision),
        "f1": float(f1),
    }

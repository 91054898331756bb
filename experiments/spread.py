"""How figures of several runs are summed up."""


def median_and_spread(values: list[float]) -> tuple[float, float]:
    """Their median and half their interquartile range, as the papers give them."""
    import numpy as np

    low, median, high = np.percentile(values, [25, 50, 75])
    return float(median), float(high - low) / 2


def spread(values: list[float], scale: float = 1.0, digits: int = 1) -> str:
    """Both, as text, of the values times `scale`."""
    median, half_range = median_and_spread([value * scale for value in values])
    return f"{median:.{digits}f} ± {half_range:.{digits}f}"

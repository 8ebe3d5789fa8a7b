"""Several comparisons at once: each p-value as if it were the only one that was looked for."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted by Holm's step-down method, in the order given.

    Calling those at most 0.05 a difference makes even one false call with a chance of at most
    0.05, however the comparisons depend on one another.

    Args:
        p_values: shape (n_comparisons,), each within [0, 1].

    Returns:
        shape (n_comparisons,), each within [0, 1] and not below its own p-value.

    Raises:
        ValueError: One is no probability.

    Source: Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6, 65-70, https://www.jstor.org/stable/4615733.
    """
    for p_value in p_values:
        if not 0.0 <= p_value <= 1.0:
            raise ValueError(f"p-value {p_value} does not lie within 0 and 1")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        # A larger p-value never ends below a smaller one.
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = largest
    return tuple(adjusted)

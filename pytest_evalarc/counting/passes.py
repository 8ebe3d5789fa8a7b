"""How often k trials would hold a success, and how often nothing else, from n that were run."""

from __future__ import annotations

import math
from collections.abc import Callable

MOST_OF_EACH = 10
"""Documents give every k up to here, and the number of trials itself."""


def pass_at_k(eligible: int, succeeded: int, k: int) -> float:
    """Return the unbiased estimate of the chance that at least one of k trials succeeds.

    It is 1 - C(n - c, k) / C(n, k) for c successes of n trials: the share of all sets of k of the
    trials that were run which hold a success. `1 - (1 - c/n)**k` would be biased.

    Args:
        eligible: Trials that count, n; at least 1.
        succeeded: Those that succeeded, c; 0 <= succeeded <= eligible.
        k: Within 1 and `eligible`: more trials than were run say nothing.

    Returns:
        Within [0, 1]; the success rate for k = 1.

    Raises:
        ValueError: A number is out of range.

    Source: Chen et al. (2021), Evaluating Large Language Models Trained on Code,
    arXiv:2107.03374, equation 1.
    """
    _require(eligible, succeeded, k)
    sets = math.comb(eligible, k)
    # One division of whole numbers, which rounds once however large they are.
    return (sets - math.comb(eligible - succeeded, k)) / sets


def pass_pow_k(eligible: int, succeeded: int, k: int) -> float:
    """Return the unbiased estimate of the chance that all of k trials succeed (pass^k).

    It is C(c, k) / C(n, k) for c successes of n trials.

    Args:
        eligible: Trials that count, n; at least 1.
        succeeded: Those that succeeded, c; 0 <= succeeded <= eligible.
        k: Within 1 and `eligible`.

    Returns:
        Within [0, 1]; the success rate for k = 1.

    Raises:
        ValueError: A number is out of range.

    Source: Yao et al. (2024), tau-bench, arXiv:2406.12045, section 4.
    """
    _require(eligible, succeeded, k)
    return math.comb(succeeded, k) / math.comb(eligible, k)


def by_k(
    estimate: Callable[[int, int, int], float], eligible: int, succeeded: int
) -> dict[int, float]:
    """Return an estimate for every k up to 10 and for all eligible trials; empty without any."""
    most = min(eligible, MOST_OF_EACH)
    ks = sorted({*range(1, most + 1), eligible} - {0})
    return {k: estimate(eligible, succeeded, k) for k in ks}


def _require(eligible: int, succeeded: int, k: int) -> None:
    if eligible < 1:
        raise ValueError(f"eligible is {eligible}, but an estimate needs at least 1")
    if not 0 <= succeeded <= eligible:
        raise ValueError(f"succeeded is {succeeded}, but must lie within 0 and {eligible}")
    if not 1 <= k <= eligible:
        raise ValueError(f"k is {k}, but must lie within 1 and {eligible}")

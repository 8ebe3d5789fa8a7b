"""How sure a success rate is, and the difference of two."""

from __future__ import annotations

import math
from statistics import NormalDist

from pytest_evalarc.model.interval import Interval

__all__ = [
    "Interval",
    "newcombe_difference",
    "normal_quantile",
    "student_quantile",
    "wilson_interval",
]

CONFIDENCE = 0.95
"""Two-sided coverage of every interval in documents."""


def wilson_interval(succeeded: int, eligible: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return the Wilson score interval of a success rate.

    It holds its coverage where trials are few and rates extreme, and never leaves [0, 1]; there is
    no continuity correction. Five successes of five give [0.566, 1], so a clean sweep of few
    trials does not pass for certainty.

    Args:
        succeeded: Trials that met everything asked; 0 <= succeeded <= eligible.
        eligible: Trials that count, so excluded ones left out; at least 1.
        confidence: Two-sided coverage, between 0 and 1 exclusive.

    Returns:
        Bounds of the rate as fractions, both within [0, 1].

    Raises:
        ValueError: A count or the confidence is out of range.

    Source: Wilson (1927), doi:10.1080/01621459.1927.10502953. Newcombe (1998),
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E, table I, method 3, gives
    81 of 263 as [0.2553, 0.3662] and 1 of 29 as [0.0061, 0.1718].
    """
    _require_counts(succeeded, eligible)
    z = normal_quantile(confidence)
    rate = succeeded / eligible
    centre = rate + z * z / (2 * eligible)
    half = z * math.sqrt(rate * (1 - rate) / eligible + (z / (2 * eligible)) ** 2)
    scale = 1 + z * z / eligible
    # At the ends the bound is exact, and only rounding would miss it.
    low = 0.0 if succeeded == 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if succeeded == eligible else min(1.0, (centre + half) / scale)
    return Interval(low, high)


def newcombe_difference(
    succeeded: int,
    eligible: int,
    other_succeeded: int,
    other_eligible: int,
    *,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return Newcombe's hybrid score interval of one success rate minus another.

    The two groups are independent: nothing pairs a trial of one with a trial of the other.

    Args:
        succeeded: Successes of the first group; 0 <= succeeded <= eligible.
        eligible: Trials of the first group; at least 1.
        other_succeeded: Successes of the group that is subtracted.
        other_eligible: Trials of the group that is subtracted; at least 1.
        confidence: Two-sided coverage, between 0 and 1 exclusive.

    Returns:
        Bounds of the difference, both within [-1, 1].

    Raises:
        ValueError: A count or the confidence is out of range.

    Source: Newcombe (1998), method 10,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I, whose table II gives
    56/70 minus 48/80 as [0.0524, 0.3339].
    """
    one = wilson_interval(succeeded, eligible, confidence=confidence)
    other = wilson_interval(other_succeeded, other_eligible, confidence=confidence)
    rate, other_rate = succeeded / eligible, other_succeeded / other_eligible
    difference = rate - other_rate
    below = math.hypot(rate - one.low, other.high - other_rate)
    above = math.hypot(one.high - rate, other_rate - other.low)
    return Interval(max(-1.0, difference - below), min(1.0, difference + above))


def normal_quantile(confidence: float) -> float:
    """Return how many standard deviations a two-sided coverage takes, as 1.96 for 0.95.

    Args:
        confidence: Between 0 and 1 exclusive.

    Raises:
        ValueError: The confidence is out of range.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}, but must lie between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def student_quantile(confidence: float, degrees: int) -> float:
    """Return how many standard errors a two-sided coverage takes when these are estimated.

    Args:
        confidence: Between 0 and 1 exclusive.
        degrees: Degrees of freedom; at least 1.

    Returns:
        Of Student's t, above `normal_quantile` and close to it for many degrees.

    Raises:
        ValueError: A number is out of range.

    Source: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4; table 26.10 gives 12.706 for 1 degree
    and 2.262 for 9 at 0.95.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}, but must lie between 0 and 1")
    if degrees < 1:
        raise ValueError(f"degrees is {degrees}, but must be at least 1")
    low, high = 0.0, math.pi / 2
    # The angle is bounded where the quantile is not; each step halves what is left.
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(middle, degrees) < confidence else (low, middle)
    return math.sqrt(degrees) * math.tan(high)


def _within(angle: float, degrees: int) -> float:
    """Return how likely Student's t lies within sqrt(degrees) * tan(angle) of 0."""
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2
    term = cosine if is_odd else 1.0
    terms = [term] if degrees > 1 else []
    for power in range(2 + is_odd, degrees - 1, 2):
        term *= cosine * cosine * (power - 1) / power
        terms.append(term)
    summed = sine * math.fsum(terms)
    return (angle + summed) * 2 / math.pi if is_odd else summed


def _require_counts(succeeded: int, eligible: int) -> None:
    if eligible < 1:
        raise ValueError(f"eligible is {eligible}, but a rate needs at least 1")
    if not 0 <= succeeded <= eligible:
        raise ValueError(f"succeeded is {succeeded}, but must lie within 0 and {eligible}")

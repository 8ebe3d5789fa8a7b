"""What a plan can show before it is run: differences below this stay unseen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_evalarc.counting.intervals import newcombe_difference
from pytest_evalarc.counting.rates import LEAST_TRIALS

POWER = 0.8
"""The chance that a difference is shown which is there."""
_LARGEST_EXACT = 2_000
"""Trials beyond which the normal approximation is as good to three decimals."""
_Z = 1.959963984540054 + 0.8416212335729143
"""Normal quantiles of a two-sided level of 0.05 and of a power of 0.8."""
_STEPS = 1_000
"""Differences are told to three decimals, rounded up."""


def smallest_difference(trials: int) -> float | None:
    """Return the smallest difference of two success rates that a plan is likely to show.

    It is shown when Newcombe's 95 % interval of the difference lies above 0 (which is how a
    verdict is found), and likely means a chance of at least 0.8, computed exactly from the two
    binomial distributions. The true rates lie evenly around one half, 0.5 - d/2 and 0.5 + d/2,
    where a given difference is hardest to show.

    Args:
        trials: Trials per configuration; at least 1.

    Returns:
        Within (0, 1], rounded up to three decimals; None where so few trials show nothing at all,
        since no verdict is given below 5. Beyond 2,000 trials the normal approximation is used.

    Raises:
        ValueError: No trial is planned.

    Source: the sum over both binomials, as in Fleiss, Levin and Paik (2003), Statistical Methods
    for Rates and Proportions, chapter 4; the approximation is d = z / sqrt(2 n + z**2) there,
    with z the sum of the quantiles of level and power.
    """
    if trials < 1:
        raise ValueError(f"trials is {trials}, but a plan needs at least 1")
    if trials < LEAST_TRIALS:
        return None
    if trials > _LARGEST_EXACT:
        return math.ceil(_STEPS * _Z / math.sqrt(2 * trials + _Z * _Z)) / _STEPS
    needed = _needed(trials)
    low, high = 0, _STEPS
    # Power grows with the difference, and 1 against 0 is always shown from 5 trials on.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(needed, middle / _STEPS) >= POWER else (middle, high)
    return high / _STEPS


def power_sentence(trials: int) -> str:
    """Return what a plan can show, for a person, in one line."""
    each = f"{trials} trial{'s' if trials > 1 else ''} for each configuration"
    difference = smallest_difference(trials)
    if difference is None:
        are = "are" if trials > 1 else "is"
        return f"{each} {are} too few to tell a difference; plan at least {LEAST_TRIALS}"
    return (
        f"{each} are likely to show a difference of success rates of {difference:.2f} or more, "
        "and not a smaller one (power 0.8, level 0.05)"
    )


def _needed(trials: int) -> tuple[int, ...]:
    """Return by successes of the baseline how many the treatment needs to be above it.

    `trials + 1` stands for a number that no trial can reach.
    """
    needed: list[int] = []
    treated = 0
    for baseline in range(trials + 1):
        # It never falls as the baseline grows, so the search goes on where it stopped.
        while treated <= trials:
            if treated > baseline:
                shown = newcombe_difference(treated, trials, baseline, trials)
                if shown.low > 0:
                    break
            treated += 1
        needed.append(treated)
    return tuple(needed)


def _power(needed: Sequence[int], difference: float) -> float:
    trials = len(needed) - 1
    baseline = _binomial(trials, 0.5 - difference / 2)
    # The treatment's rate mirrors the baseline's: t successes are as likely as t failures there.
    at_most = [0.0]
    for chance in baseline:
        at_most.append(at_most[-1] + chance)
    return math.fsum(
        chance * at_most[trials + 1 - least] for chance, least in zip(baseline, needed, strict=True)
    )


def _binomial(trials: int, rate: float) -> list[float]:
    """Return the chance of each number of successes, by logarithms: powers alone underflow."""
    if rate <= 0.0:
        return [1.0, *[0.0] * trials]
    log_yes, log_no = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(trials + 1)
    return [
        math.exp(
            whole
            - math.lgamma(number + 1)
            - math.lgamma(trials - number + 1)
            + number * log_yes
            + (trials - number) * log_no
        )
        for number in range(trials + 1)
    ]

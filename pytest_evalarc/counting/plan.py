"""Which trials of a batch are treated, and in which order they run."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_evalarc.model.planned import PlannedTrial


def planned_trials(configurations: Sequence[str], trials: int) -> tuple[PlannedTrial, ...]:
    """Return every trial of a batch, by round and by place in its round.

    Args:
        configurations: Distinct names in the order of the first round, the baseline first.
        trials: Trials per configuration, which is also the number of rounds; at least 1.

    Returns:
        `len(configurations) * trials` trials. Odd rounds keep the given order and even ones
        reverse it, so no configuration always meets the machine in the same state.

    Raises:
        ValueError: No trial is asked for, or a configuration is named twice or not at all.
    """
    if trials < 1:
        raise ValueError(f"trials is {trials}, but a plan needs at least 1")
    if not configurations or len(set(configurations)) < len(configurations):
        raise ValueError(f"configurations are not distinct names: {list(configurations)}")
    return tuple(
        PlannedTrial(configuration=configuration, trial=round_, round=round_, order=order)
        for round_ in range(1, trials + 1)
        for order, configuration in enumerate(
            configurations if round_ % 2 else reversed(configurations), start=1
        )
    )


def is_treated(configuration: str) -> bool:
    """Return whether a configuration's trials get the treatment (`with-<treatment>`, `noise`)."""
    return configuration == "noise" or configuration.startswith("with-")

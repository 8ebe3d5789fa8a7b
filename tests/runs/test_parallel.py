"""What `--evalarc-max-parallel` may say."""

from __future__ import annotations

import pytest

from pytest_evalarc.errors import UsageError
from pytest_evalarc.runs.parallel import MaxParallel, max_parallel

KNOWN = ("claude", "codex", "oracle")


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("4", {"claude": 4, "codex": 4}),
        ("claude=4,codex=2", {"claude": 4, "codex": 2, "oracle": None}),
        (" claude = 1 , 3 ", {"claude": 1, "codex": 3}),
        ("100000", {"oracle": 100_000}),
    ],
)
def test_a_number_is_for_each_client_that_has_none_of_its_own(
    text: str, limits: dict[str, int | None]
) -> None:
    """Providers differ, and most projects have one of them."""
    found = max_parallel(text, known=KNOWN)

    assert {label: found.of(label) for label in limits} == limits


def test_nothing_bounds_what_nobody_has_bound() -> None:
    """As many trials run as there are workers."""
    assert MaxParallel().of("claude") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("claud=2", "no client 'claud'; nearest: claude"),
        ("claude=0", "0 is not a number of trials; give 1 to 100000"),
        ("0", "0 is not a number of trials; give 1 to 100000"),
        ("100001", "100001 is not a number of trials; give 1 to 100000"),
        ("9" * 5000, "is not a number of trials; give 1 to 100000"),
        ("claude=-1", "'claude=-1' is neither a number nor LABEL=NUMBER"),
        ("-1", "'-1' is neither a number nor LABEL=NUMBER"),
        ("claude", "'claude' is neither a number nor LABEL=NUMBER"),
        ("claude=", "'claude=' is neither a number nor LABEL=NUMBER"),
        ("=3", "'=3' is neither a number nor LABEL=NUMBER"),
        ("claude=1.5", "'claude=1.5' is neither a number nor LABEL=NUMBER"),
        ("claude=²", "'claude=²' is neither a number nor LABEL=NUMBER"),
        ("2,", "'' is neither a number nor LABEL=NUMBER"),
        ("claude=1,claude=2", "tells claude twice; tell each once"),
        ("3,4", "tells two numbers for all other clients; tell each once"),
    ],
)
def test_what_is_no_limit_is_told_in_one_sentence(text: str, problem: str) -> None:
    """A limit that is not the one meant costs money, or a provider's patience."""
    with pytest.raises(UsageError) as told:
        max_parallel(text, known=KNOWN)

    assert str(told.value).startswith("--evalarc-max-parallel '")
    assert problem in str(told.value)
    assert len(str(told.value).splitlines()) == 1
    assert len(str(told.value)) < 700

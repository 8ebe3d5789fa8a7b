"""The corpus says what it is, and nobody takes it for tasks."""

from __future__ import annotations

from collections import Counter

from tests.adversarial.corpus import CORPUS, INERT, SUBMISSIONS, attacks
from tests.adversarial.submissions import FORMS

FAMILIES = {
    "answer-search",
    "build-script",
    "early-exit",
    "environment",
    "escape",
    "exhaustion",
    "grader-tampering",
    "in-process",
    "links",
    "loader",
    "no-verdict",
    "output",
    "planted-results",
    "runner-hijack",
    "special-files",
}


def test_every_attack_declares_what_it_tries_and_what_must_be_seen() -> None:
    """Its files are the attack and nothing else, so an empty one would attack nothing."""
    for attack in attacks():
        keys = set(FORMS) if attack.kind in SUBMISSIONS else {"outcome", "execution", "cause"}
        assert attack.tries.endswith("."), attack.name
        assert set(attack.seen) == keys, attack.name
        assert attack.files, attack.name
        assert bool(attack.effect) is (attack.kind == "session"), attack.name


def test_the_corpus_covers_every_family_in_every_kind() -> None:
    """A folder whose declaration is misspelt would leave the corpus without a word."""
    counted = Counter(attack.kind for attack in attacks())

    assert {attack.family for attack in attacks()} == FAMILIES
    assert set(counted) == {*SUBMISSIONS, "session"}
    assert sum(counted.values()) == len(list(CORPUS.glob("*/*/*"))) >= 90
    assert min(counted.values()) >= 12


def test_what_no_harness_can_stop_is_a_family_of_its_own() -> None:
    """It is never counted as caught, so it must never be among what is."""
    assert {a.family for a in attacks() if not a.stoppable} == {"in-process"}
    assert all(not a.stoppable for a in attacks() if a.family == "in-process")


def test_no_attack_is_taken_for_anything_else() -> None:
    """`pytest evals` walks through here, and would load what is there to cheat it."""
    files = [path for path in CORPUS.rglob("*") if path.is_file()]

    assert {path.name for path in files if not path.name.endswith(INERT)} == {"attack.toml"}

"""Audit our own grader with every attack of the corpus: `python -m tests.adversarial`.

Run from the root of the repository; it needs bubblewrap, Node, cargo and a user who may mount.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.adversarial.corpus import SUBMISSIONS, Attack, attacks
from tests.adversarial.submissions import FORMS, fools_an_unprotected_grader, graded, staged
from tests.adversarial.world import World

WON = "passed"


class Row(NamedTuple):
    """What one attack came to."""

    attack: Attack
    wins_unprotected: bool
    """Whether it won where nothing protects; of what aims at our checks alone, in their process."""
    observed: tuple[str, ...]
    """What each of our observations was: a check in either form, or the trial of an agent."""
    stopped: tuple[bool, ...]
    """Which of them did not let it win."""

    @property
    def margin(self) -> int:
        """How many observations stopped it, independently of each other."""
        return sum(self.stopped)

    @property
    def is_caught(self) -> bool:
        """Whether nothing let it win; what wins anywhere is not caught."""
        return self.margin == len(self.stopped)

    @property
    def is_as_declared(self) -> bool:
        """Whether all is as the corpus says."""
        return (
            self.wins_unprotected
            and self.is_caught is self.attack.stoppable
            and self.observed == tuple(self.attack.seen.values())
        )

    @property
    def document(self) -> dict[str, Any]:
        """The row as JSON."""
        return {
            "attack": self.attack.name,
            "tries": self.attack.tries,
            "stoppable": self.attack.stoppable,
            "wins_unprotected": self.wins_unprotected,
            "observed": list(self.observed),
            "margin": self.margin,
            "observations": len(self.stopped),
            "caught": self.is_caught,
            "as_declared": self.is_as_declared,
        }


def rows(folder: Path) -> Iterator[Row]:
    """Yield what each attack comes to, without any protection and in ours."""
    tools = {}
    for kind in SUBMISSIONS:
        (folder / "tools" / kind).mkdir(parents=True)
        tools[kind] = staged(kind, folder / "tools" / kind)
    for number, attack in enumerate(attacks()):
        own = folder / str(number)
        if attack.kind not in SUBMISSIONS:
            yield _agent(attack, own)
            continue
        seen = tuple(graded(attack, form, own / form, tools[attack.kind]) for form in FORMS)
        fooled = (
            WON in seen if attack.only_ours else fools_an_unprotected_grader(attack, own / "un")
        )
        yield Row(attack, fooled, seen, tuple(status != WON for status in seen))


def _agent(attack: Attack, folder: Path) -> Row:
    with World.around(folder / "unprotected") as world:
        harmed = attack.effect in world.effects(world.unprotected(attack))
    with World.around(folder / "ours") as world:
        left = world.ours(attack)
        return Row(attack, harmed, tuple(left.told.values()), (not world.effects(left),))


def lines(found: Sequence[Row]) -> Iterator[str]:
    """Yield both tables: what must be caught, and what no harness can stop."""
    stoppable = [row for row in found if row.attack.stoppable]
    yield f"{'attack':<50} {'unprotected':<12} {'margin':<8} observed"
    yield from map(_line, stoppable)
    caught = [row for row in stoppable if row.is_caught and row.is_as_declared]
    weakest = min((row.margin for row in stoppable), default=0)
    yield ""
    yield f"{len(caught)} of {len(stoppable)} caught as declared, weakest margin {weakest}"
    yield ""
    yield "What shares a process with its check, which no harness can stop there; never counted:"
    yield from (_line(row) for row in found if not row.attack.stoppable)


def _line(row: Row) -> str:
    won = "wins" if row.wins_unprotected else "LOSES"
    margin = f"{row.margin} of {len(row.stopped)}"
    told = ", ".join(word for word in row.observed if word)
    return f"{row.attack.name:<50} {won:<12} {margin:<8} {told}" + (
        "" if row.is_as_declared else "  NOT AS DECLARED"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the audit, and return 1 when anything is not as the corpus declares it."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial", description=__doc__)
    parser.add_argument("--json", type=Path, help="write every row there")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="evalarc-adversarial-") as folder:
        found = list(rows(Path(folder).resolve()))
    print("\n".join(lines(found)))
    if given.json is not None:
        document = {"schema_version": "1", "rows": [row.document for row in found]}
        given.json.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", "utf-8")
    return 0 if all(row.is_as_declared for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())

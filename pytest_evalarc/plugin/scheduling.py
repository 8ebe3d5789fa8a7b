"""Hand out work by trial: what belongs to one trial goes to one worker.

Correctness never rests on this: a lock and a file see to it that a trial runs once wherever its
items land. It only keeps workers from waiting for each other.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import parse_tx_spec_config

TRIAL_PARTS = 3
"""Client, configuration and trial follow the task file in a node id."""
AUDIT_PARTS = 2
MOST_WORDS = 50
"""Parameters of more words are not searched for a trial, which would take long and saves little."""


def group_of(nodeid: str) -> str | tuple[str, ...]:
    """Return what a node id is handed out with: its trial, its control, or itself alone."""
    path, separator, rest = nodeid.partition("::")
    parts = rest.split("::")
    if not separator or not path.endswith("task.toml"):
        return nodeid
    if parts[0] == "submission":
        return (path, parts[0])
    if parts[0] == "audit" and len(parts) > AUDIT_PARTS:
        return (path, *parts[:AUDIT_PARTS])
    return (path, *parts[:TRIAL_PARTS]) if len(parts) > TRIAL_PARTS else nodeid


def trial_in(nodeid: str, trials: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the trial that an ordinary test looks at; None when it looks at none.

    Args:
        nodeid: The test's; other parameters may stand before and behind the trial in its id.
        trials: Each trial's group by its id.
    """
    _, _, rest = nodeid.partition("[")
    words = rest.removesuffix("]").split("-")
    if len(words) > MOST_WORDS:
        return None
    places = itertools.combinations(range(len(words) + 1), 2)
    found = (trials.get("-".join(words[start:end])) for start, end in places)
    return next((trial for trial in found if trial is not None), None)


class TrialScheduling:
    """A scheduler of pytest-xdist that hands out one group at a time."""

    def __init__(
        self,
        config: pytest.Config,
        log: Any,  # noqa: ARG002 - what xdist hands to every scheduler.
        trials: Callable[[], Mapping[str, tuple[str, ...]]] = dict,
    ) -> None:
        """Take what returns each trial's group by its id in ordinary tests."""
        self._trials = trials
        self.config = config
        self.numnodes = len(parse_tx_spec_config(config))
        self.collection: list[str] | None = None
        self._queue: deque[list[int]] = deque()
        self._pending: dict[Any, list[int]] = {}
        self._collections: dict[Any, list[str]] = {}

    @property
    def nodes(self) -> list[Any]:
        """The workers that are there."""
        return list(self._pending)

    @property
    def collection_is_completed(self) -> bool:
        """Whether every worker has collected."""
        return len(self._collections) >= self.numnodes

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to hand out."""
        if not self.collection_is_completed or self._queue:
            return False
        return all(len(pending) < 2 for pending in self._pending.values())

    @property
    def has_pending(self) -> bool:
        """Whether anything is queued or under way."""
        return bool(self._queue) or any(self._pending.values())

    def add_node(self, node: Any) -> None:
        """Take a worker."""
        self._pending[node] = []

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take what a worker collected; a later one that differs gets no work."""
        if self.collection is None or list(collection) == self.collection:
            self._collections[node] = list(collection)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """Take note that an item has ended."""
        self._pending[node].remove(item_index)
        self._feed(node)

    def mark_test_pending(self, item: str) -> None:
        """Put an item back in the queue."""
        if self.collection is not None:
            self._queue.appendleft([self.collection.index(item)])
        for node in self.nodes:
            self._feed(node)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:  # noqa: ARG002
        """Take work back: never asked of a scheduler that does not steal."""
        raise RuntimeError("trials are not taken back from a worker")

    def remove_node(self, node: Any) -> str | None:
        """Take note that a worker is gone; return the item it died in, which is not run again."""
        pending = self._pending.pop(node)
        if self.collection is None:
            self._collections.pop(node, None)
        if not pending or self.collection is None:
            return None
        crashed, *rest = pending
        if rest:
            self._queue.appendleft(rest)
        for other in self.nodes:
            self._feed(other)
        return self.collection[crashed]

    def schedule(self) -> None:
        """Hand out the first work, or what a new worker can do."""
        if self.collection is None and not self._agree():
            return
        for node in self.nodes:
            self._feed(node, want=1)
        # A worker holds one item back until it knows the next, so it needs one to look ahead to.
        for node in self.nodes:
            self._feed(node)

    def _agree(self) -> bool:
        """Compare what the workers collected and fill the queue; report the first difference."""
        (first, collection), *others = self._collections.items()
        for node, other in others:
            difference = report_collection_diff(
                collection, other, first.gateway.id, node.gateway.id
            )
            if difference:
                report = pytest.CollectReport(
                    nodeid=node.gateway.id, outcome="failed", longrepr=difference, result=[]
                )
                self.config.hook.pytest_collectreport(report=report)
                return False
        self.collection = collection
        trials = self._trials()
        groups: dict[str | tuple[str, ...], list[int]] = {}
        for index, nodeid in enumerate(collection):
            group = (trial_in(nodeid, trials) if trials else None) or group_of(nodeid)
            groups.setdefault(group, []).append(index)
        self._queue.extend(groups.values())
        return True

    def _feed(self, node: Any, want: int = 2) -> None:
        if node.shutting_down or node not in self._collections:
            return
        pending = self._pending[node]
        while self._queue and len(pending) < want:
            group = self._queue.popleft()
            pending.extend(group)
            node.send_runtest_some(group)
        if not self._queue and want > 1:
            # This also releases the item that the worker holds back.
            node.shutdown()

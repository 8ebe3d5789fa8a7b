"""Hand out work by trial: what belongs to one trial goes to one worker, and long trials first.

Correctness never rests on this: a lock and a file see to it that a trial runs once wherever its
items land. It only keeps workers from waiting for each other, and for a client's slot.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import parse_tx_spec_config

from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.plugin.expectations import selected_folders, task_id, trials_by_id
from pytest_evalarc.runs.parallel import MaxParallel

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession

TRIAL_PARTS = 3
"""Client, configuration and trial follow the task file in a node id."""
AUDIT_PARTS = 2
MOST_WORDS = 50
"""Parameters of more words are not searched for a trial, which would take long and saves little."""

Group = str | tuple[str, ...]
"""What is handed out together: an item by its id, or the parts of a trial's or a control's."""


def group_of(nodeid: str) -> Group:
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


def client_of(group: Group) -> str | None:
    """Return the client that a group needs a slot of; None for all that is no trial."""
    is_trial = not isinstance(group, str) and len(group) > TRIAL_PARTS
    return group[1] if is_trial else None


def longest_first(groups: Iterable[Group], lengths: Mapping[str, float]) -> list[Group]:
    """Return groups with the tasks of long trials first, so that none of them is left for the end.

    Args:
        groups: In the order of collection, which stays as it is inside a task.
        lengths: Seconds that a trial may take, by task file; what is in none has no trials, and
            comes last: it fills what is left over.
    """

    def length(group: Group) -> float:
        file = group.partition("::")[0] if isinstance(group, str) else group[0]
        return lengths.get(file, 0.0)

    return sorted(groups, key=length, reverse=True)


class Known(NamedTuple):
    """What the controller, which never collects, knows of the work."""

    trials: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Each trial's group by its id in ordinary tests."""
    lengths: Mapping[str, float] = MappingProxyType({})
    """Seconds that a trial may take, by task file; of the tasks that have any."""
    limits: MaxParallel = MaxParallel()

    @classmethod
    def of(cls, evals: EvalSession) -> Known:
        """Return what is known of a session's work; nothing where trials are not what is run."""
        if evals.work is not None:
            return cls()
        return cls(trials_by_id(evals), _lengths(evals), evals.request.max_parallel)


def _lengths(evals: EvalSession) -> Mapping[str, float]:
    if not _has_trials(evals):
        return {}
    found = {}
    for folder in selected_folders(evals):
        # What is wrong with a task is told by its validation.
        with suppress(EvalArcError):
            found[task_id(evals, folder)] = evals.task(folder).deadlines.trial
    return found


def _has_trials(evals: EvalSession) -> bool:
    named = {path for _, path, _ in evals.node_ids_in_arguments()}
    return evals.options.are_trials_asked_for() or any(evals.clients_for(path) for path in named)


class Queue:
    """What is still to be handed out, a lane for each client and one for all that needs none."""

    def __init__(self, limits: MaxParallel) -> None:
        """Take how many trials of each client may run at once."""
        self._limits = limits
        self._lanes: dict[str | None, deque[tuple[int, list[int]]]] = {}
        self._numbers = itertools.count(1)
        self._earlier = itertools.count(-1, -1)

    def __len__(self) -> int:
        """Return how many groups are left."""
        return sum(map(len, self._lanes.values()))

    def append(self, client: str | None, items: list[int]) -> None:
        """Hand a group out after all others."""
        self._lanes.setdefault(client, deque()).append((next(self._numbers), items))

    def put_back(self, items: list[int]) -> None:
        """Hand items out before all others; what they need has run."""
        self._lanes.setdefault(None, deque()).appendleft((next(self._earlier), items))

    def pop(self, running: Mapping[str, int]) -> list[int]:
        """Return the first group that can run at once.

        Where none can it is the first of all: a worker that knows no next item does not end the
        one it is at.

        Args:
            running: How many trials of each client are handed out and have not run.

        Raises:
            IndexError: Nothing is left.
        """
        left = [client for client, lane in self._lanes.items() if lane]
        if not left:
            raise IndexError("nothing is left to hand out")
        at_once = [client for client in left if self._has_slot(client, running)]
        client = min(at_once or left, key=lambda client: self._lanes[client][0][0])
        return self._lanes[client].popleft()[1]

    def _has_slot(self, client: str | None, running: Mapping[str, int]) -> bool:
        most = self._limits.of(client) if client is not None else None
        return client is None or most is None or running.get(client, 0) < most


class TrialScheduling:
    """A scheduler of pytest-xdist that hands out one group at a time."""

    def __init__(
        self,
        config: pytest.Config,
        log: Any,  # noqa: ARG002 - what xdist hands to every scheduler.
        known: Callable[[], Known] = Known,
    ) -> None:
        """Take what returns all that is known of the work."""
        self._known = known
        self.config = config
        self.numnodes = len(parse_tx_spec_config(config))
        self.collection: list[str] | None = None
        self._queue = Queue(MaxParallel())
        self._starts: dict[int, str] = {}
        """The client of each trial by the item that runs it: the first one handed out."""
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
            self._queue.put_back([self.collection.index(item)])
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
            self._queue.put_back(rest)
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
        trials, lengths, limits = self._known()
        groups: dict[Group, list[int]] = {}
        for index, nodeid in enumerate(collection):
            group = (trial_in(nodeid, trials) if trials else None) or group_of(nodeid)
            groups.setdefault(group, []).append(index)
        self._queue = Queue(limits)
        for group in longest_first(groups, lengths):
            client = client_of(group)
            self._queue.append(client, groups[group])
            if client is not None:
                self._starts[groups[group][0]] = client
        return True

    def _running(self) -> Counter[str]:
        """Return how many trials of each client are handed out and have not run."""
        handed_out = itertools.chain.from_iterable(self._pending.values())
        return Counter(self._starts[item] for item in handed_out if item in self._starts)

    def _feed(self, node: Any, want: int = 2) -> None:
        if node.shutting_down or node not in self._collections:
            return
        pending = self._pending[node]
        while self._queue and len(pending) < want:
            group = self._queue.pop(self._running())
            pending.extend(group)
            node.send_runtest_some(group)
        if not self._queue and want > 1:
            # This also releases the item that the worker holds back.
            node.shutdown()

"""Workers on other hosts, seen from the controller and from the worker: each message's answer."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import execnet
import pytest
from xdist.workermanage import make_reltoroot

from pytest_evalarc.errors import DocumentError, InfrastructureError, UsageError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.lock import GivenUp
from pytest_evalarc.model.base import SCHEMA_VERSION, Model
from pytest_evalarc.plugin.facts import first_difference, tasks_in
from pytest_evalarc.plugin.home import Home, shares_results
from pytest_evalarc.plugin.hosts import Hosts, Link, host_name, is_elsewhere, keep_arguments
from pytest_evalarc.runs.intake import Intake, Keeper
from pytest_evalarc.runs.once import mark_of
from tests.evals import Evals

TRIAL = "hello/oracle/night/trial-1-with-skills/result.json"
ROW = "hello/audit/night/rows/silent.json"


class Plan(Model):
    """A document to be kept."""

    schema_version: str = SCHEMA_VERSION


class Channel:
    """Both ends of a channel: what a worker sends is answered at once, in its own thread."""

    def __init__(self) -> None:
        self.answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.is_cut = False
        self._take: Callable[[Any], None] = lambda message: None
        self.change: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda message: message

    def setcallback(self, take: Callable[[Any], None], endmarker: object) -> None:
        """Have the controller listen."""
        self._take = take
        assert endmarker is None

    def send(self, message: tuple[Any, ...]) -> None:
        """Send from whichever end: answers have three parts, and messages four."""
        if self.is_cut:
            raise OSError("cannot send (already closed?)")
        # Only what execnet can send ever reaches the other side.
        message = execnet.loads(execnet.dumps(message))
        if len(message) == 3:
            self.answers.put(message)
        else:
            self._take(self.change(message))

    def receive(self) -> Any:
        """Return the next answer."""
        if self.is_cut:
            raise EOFError
        return self.answers.get(timeout=60)


class Line:
    """What a trial waits in: its turn comes after so many askings."""

    def __init__(self, askings: int = 0) -> None:
        self.askings = askings
        self.said: list[str] = []

    def is_served(self, slot: ExitStack) -> bool:
        """Hold the slot once all askings are over."""
        self.askings -= 1
        if self.askings >= 0:
            return False
        self.said.append("served")
        slot.callback(self.said.append, "free")
        return True

    def close(self) -> None:
        """Leave it."""
        self.said.append("left")


class Pair:
    """A worker's way home, with a controller at its end."""

    def __init__(self, folder: Path) -> None:
        self.there, self.here = folder / "there", folder / "here"
        self.channel = Channel()
        self.settled: dict[str, str] = {}
        self.plans: list[bytes] = []
        self.refusal: Exception | None = None
        self.reason: str | None = None
        self.line = Line()
        intake = Intake(
            results=self.here,
            batch="night",
            host="hostA",
            keeper=Keeper(
                keep_plan=self._keep_plan,
                line_up=lambda _: self.line,
                admit=lambda _: self.reason,
                announced=lambda _: contextlib.nullcontext(),
                settle=self._settle,
            ),
        )
        self.link = Link(self.channel, "hostA", intake)
        self.home = Home(self.channel, self.there)
        self.no_more = threading.Event()

    def _keep_plan(self, path: Path, document: bytes) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.plans.append(document)

    def _settle(self, path: Path, loss: BaseException | None) -> None:
        self.settled[path.relative_to(self.here).as_posix()] = str(loss)
        mark_of(path).unlink(missing_ok=True)
        path.write_text("cancelled")

    def run(self, name: str = TRIAL, *, content: str = "succeeded") -> str:
        """Run something as a worker does, and return what it then finds."""
        path = self.there / name
        with self.home.brought(path, given_up=self.no_more):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                (path.parent / "evidence").write_text("all of it")
                path.write_text(content)
        return path.read_text()

    def names(self) -> list[str]:
        """Return what the controller has, locks aside."""
        found = (path.relative_to(self.here).as_posix() for path in self.here.rglob("*"))
        return sorted(name for name in found if name.endswith((".json", "evidence", ".begun")))


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Return a worker and its controller."""
    return Pair(tmp_path)


def test_a_trial_is_brought_home_with_its_evidence(pair: Pair) -> None:
    """And asked for again it costs no message."""
    assert pair.run() == "succeeded"
    pair.channel.is_cut = True

    assert pair.run() == "succeeded"

    assert pair.names() == [TRIAL.replace("result.json", "evidence"), TRIAL]
    assert pair.settled == {}


def test_a_row_is_brought_home_alone(pair: Pair) -> None:
    """Its folder is that of all rows, and holds what others are at."""
    pair.run(ROW)

    assert pair.names() == [ROW]


def test_what_is_there_already_is_fetched(pair: Pair) -> None:
    """A batch that is gone on with runs nothing again, on whichever host an item lands."""
    (pair.here / TRIAL).parent.mkdir(parents=True)
    (pair.here / TRIAL).write_text("succeeded elsewhere")

    assert pair.run() == "succeeded elsewhere"
    assert pair.names() == [TRIAL]


def test_a_trial_beyond_the_budget_is_skipped(pair: Pair) -> None:
    """The worker knows the budget of no other host."""
    pair.reason = "10 of 10 tokens are used"

    with pytest.raises(pytest.skip.Exception, match="not started: 10 of 10 tokens are used"):
        pair.run()

    assert not (pair.there / TRIAL).exists()


def test_waiting_for_another_host_ends_with_the_items_time(pair: Pair, tmp_path: Path) -> None:
    """Whoever is at it may take long, or be lost."""
    other = Pair(tmp_path)
    other.link.intake.claim(TRIAL)
    pair.no_more.set()

    with pytest.raises(GivenUp):
        pair.run()


@pytest.mark.parametrize("verb", ["open", "data", "close"])
def test_what_is_changed_on_the_way_counts_as_not_arrived(verb: str, pair: Pair) -> None:
    """Both sides know it, and nothing is half there."""
    other = {"open": 7, "data": b"other", "close": "0" * 64}[verb]
    pair.channel.change = lambda m: (*m[:3], other) if m[1] == verb else m

    with pytest.raises(DocumentError, match="cannot be sent: "):
        pair.run()

    assert pair.names() == [TRIAL]
    assert pair.settled[TRIAL].startswith("its result did not arrive from host hostA: ")


def test_a_full_disk_here_is_told_there(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sentence is the cause: what comes after it only follows from it."""

    def full(descriptor: int, data: object) -> None:
        raise InfrastructureError("/results", "cannot be written: No space left on device")

    monkeypatch.setattr("pytest_evalarc.files.parcel.write_all", full)

    with pytest.raises(DocumentError, match="/results: cannot be written: No space left"):
        pair.run()

    assert "No space left on device" in pair.settled[TRIAL]
    assert pair.names() == [TRIAL]


def test_what_was_never_made_gives_the_claim_back(pair: Pair) -> None:
    """A row that could not be graded there can be graded elsewhere."""
    with (
        pytest.raises(RuntimeError),
        pair.home.brought(pair.there / ROW, given_up=pair.no_more),
    ):
        raise RuntimeError("its toolchain is not there")

    assert pair.names() == []
    assert pair.run(ROW) == "succeeded"


def test_what_was_cut_off_is_brought_home_too(pair: Pair) -> None:
    """An interrupted trial has a result that says so, and its evidence."""
    path = pair.there / TRIAL
    with pytest.raises(KeyboardInterrupt), pair.home.brought(path, given_up=pair.no_more):
        path.parent.mkdir(parents=True)
        path.write_text("interrupted")
        raise KeyboardInterrupt

    assert (pair.here / TRIAL).read_text() == "interrupted"


def test_a_controller_out_of_reach_is_told_in_a_sentence(pair: Pair) -> None:
    """What this host did stays on it."""
    pair.channel.is_cut = True

    with pytest.raises(DocumentError, match="the controller: is out of reach"):
        pair.run()


def test_another_plan_is_refused_where_the_trial_would_run(pair: Pair) -> None:
    """As if the batch were on the same machine."""
    pair.home.keep_plan(pair.there / "hello/oracle/night/plan.json", Plan())
    pair.refusal = UsageError("--evalarc-batch", "the batch was planned with another model")

    with pytest.raises(UsageError, match="--evalarc-batch: the batch was planned with another"):
        pair.home.keep_plan(pair.there / "hello/oracle/night/plan.json", Plan())

    assert len(pair.plans) == 1


def test_an_answer_that_nobody_read_is_passed_over(pair: Pair) -> None:
    """An interrupt may come between a question and its answer."""
    pair.channel.answers.put((0, "refused", "an older question"))

    assert pair.run() == "succeeded"


@pytest.mark.parametrize(
    "message",
    [(1, "claim", TRIAL, b"x"), (1, "plan", TRIAL, None), (1, "close", TRIAL, "x")],
)
def test_what_makes_no_sense_is_refused(message: tuple[Any, ...], pair: Pair) -> None:
    """Another host is not trusted with this process."""
    pair.link.take(message)

    number, word, told = pair.channel.answers.get(timeout=60)
    assert (number, word) == (1, "refused")
    assert told.startswith("host hostA: ")


@pytest.mark.parametrize("message", [(), (1,), "text", (1, "no verb", "", None), None])
def test_what_is_no_message_is_passed_over(message: Any, pair: Pair) -> None:
    """The thread that receives must not die of it."""
    pair.link.take(message)

    assert pair.run() == "succeeded"


# What hosts are.


@pytest.mark.parametrize(
    ("spec", "name", "elsewhere"),
    [
        ("popen", "gw0", False),
        ("popen//python=python3.13", "gw0", False),
        ("popen//chdir=/other", "gw0", True),
        ("ssh=hostA//chdir=/x", "hostA", True),
        ("ssh=-F /etc/ssh_config me@hostA//python=python3", "me@hostA", True),
        ("socket=10.0.0.1:8888", "10.0.0.1:8888", True),
        ("vagrant_ssh=box", "box", True),
    ],
)
def test_a_host_is_called_as_its_specification_does(spec: str, name: str, elsewhere: bool) -> None:
    """A worker's own number says nothing to whoever has to look at a machine."""
    parsed = execnet.XSpec(spec)
    parsed.id = "gw0"

    assert host_name(parsed) == name
    assert is_elsewhere(parsed) is elsewhere


@pytest.mark.parametrize(
    ("argument", "there"),
    [
        ("evals", "./evals"),
        ("evals/tasks/hello/task.toml::validate", "./evals/tasks/hello/task.toml::validate"),
        ("{start}/evals", "./evals"),
        ("{start}", "./."),
        ("/", "/."),
        ("{outside}", "{outside}"),
        ("no-such-file", "no-such-file"),
        ("--evalarc-client=oracle", "--evalarc-client=oracle"),
    ],
)
def test_arguments_lead_to_the_same_place_in_each_checkout(
    argument: str, there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By xdist's own function, which knows nothing but copies that it made."""

    class Manager:
        roots: Any = ()
        rsync_roots: Any = None

    start, outside = tmp_path / "project", tmp_path / "outside"
    (start / "evals/tasks/hello").mkdir(parents=True)
    (start / "evals/tasks/hello/task.toml").touch()
    outside.mkdir()
    monkeypatch.chdir(start)
    manager = Manager()
    keep_arguments(manager, start)

    (found,) = make_reltoroot(manager.roots, [argument.format(start=start, outside=outside)])

    assert found == there.format(outside=outside)
    assert manager.rsync_roots(None) is None


def test_only_who_sees_the_controllers_file_shares_its_folder(tmp_path: Path) -> None:
    """The same path on another machine holds other files."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/.seen").touch()

    assert shares_results(tmp_path / "here", ".seen")
    assert not shares_results(tmp_path / "elsewhere", ".seen")


def test_the_first_difference_is_told_with_both_values() -> None:
    """One sentence that names the host, what differs, and how."""
    own = {"pytest-evalarc": "1.0", "task hello": "a", "sandbox bwrap": "0.11"}

    assert first_difference(own, dict(own), host="hostB") is None
    assert str(first_difference(own, {**own, "task hello": "b"}, host="hostB")) == (
        "host hostB: has task hello b, and the controller has a; make both the same"
    )
    lacks = {name: value for name, value in own.items() if name != "sandbox bwrap"}
    assert "has sandbox bwrap none, and the controller has 0.11" in str(
        first_difference(own, lacks, host="hostB")
    )
    assert "has client mine 2, and the controller has none" in str(
        first_difference(own, {**own, "client mine": "2"}, host="hostB")
    )
    assert tasks_in(own) == ["hello"]


def test_a_trial_of_another_host_waits_for_its_turn_here(pair: Pair) -> None:
    """A provider's limit is of all hosts together, and waiting takes no time of the trial's."""
    pair.line = Line(askings=2)
    waited: list[str] = []

    @contextmanager
    def paused() -> Iterator[None]:
        waited.append("paused")
        yield
        waited.append("goes on")

    with pair.home.brought(pair.there / TRIAL, given_up=pair.no_more, paused=paused):
        during = list(pair.line.said)
        (pair.there / TRIAL).parent.mkdir(parents=True)
        (pair.there / TRIAL).write_text("succeeded")

    assert waited == ["paused", "goes on"]
    assert during == ["served", "left"]
    assert pair.line.said == ["served", "left", "free"]


def test_a_lost_host_leaves_its_slots_and_its_places(pair: Pair) -> None:
    """Else nobody would run what it was at, nor what was behind it."""
    pair.link.intake.claim(TRIAL)
    holding = pair.line
    pair.line = waiting = Line(askings=9)
    pair.link.intake.claim(TRIAL.replace("trial-1", "trial-2"))

    pair.link.intake.lose()

    assert holding.said == ["served", "left", "free"]
    assert waiting.said == ["left"]


def test_a_plan_is_read_once_whatever_its_hosts_ask(tmp_path: Path) -> None:
    """Every trial asks for its place in it, and there may be ten thousand."""
    evals = Evals(tmp_path)
    plan = evals.folder / "plan.json"
    plan.parent.mkdir(parents=True)
    write_model(plan, evals.plan)
    hosts = Hosts(SimpleNamespace(add_cleanup=lambda _: None), lambda: None)
    first, last = evals.plan.trials[0], evals.plan.trials[-1]
    assert hosts._planned(plan.with_name(first.folder)) == (evals.plan, first)

    plan.unlink()

    assert hosts._planned(plan.with_name(last.folder)) == (evals.plan, last)
    with pytest.raises(UsageError, match="is no trial of the plan"):
        hosts._planned(plan.with_name("trial-99-baseline"))

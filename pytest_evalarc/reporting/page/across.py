"""What a batch shows over all of its tasks: one answer a client, and each task's part in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_evalarc.counting.paired import LEAST_TASKS
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.shown import Shown
from pytest_evalarc.model.summary import AcrossTasks, Summary, TaskSummary
from pytest_evalarc.reporting.page.figures import Number, told_end, told_points, told_rate
from pytest_evalarc.reporting.page.plots import Rate
from pytest_evalarc.reporting.page.trial import UNKNOWN
from pytest_evalarc.reporting.page.words import WORDS, Answer, points, told_verdict

_LEFT_OUT = {
    "partial": "planned trials never reached their end",
    "not_enforced": "trials ran without an enforced boundary",
    "models_differ": "different models answered",
    "no_rate": "a configuration has no eligible trial",
}


@dataclass(frozen=True, kw_only=True)
class TaskPart:
    """One task's part in what all of them show."""

    task: str
    cells: tuple[Number, ...]
    """Rates by configuration, then what `AllTasks.heads` names."""
    word: str
    """The adjusted verdict, or why the task does not count."""


@dataclass(frozen=True, kw_only=True)
class AllTasks:
    """One client, model and treatment over all tasks of a batch."""

    title: str
    """Which tasks with which client."""
    answer: Answer
    facts: tuple[tuple[str, Number], ...]
    """Each number of the answer, by what it is."""
    note: str
    """Which tasks decide, and which do not count; empty where there is nothing to tell."""
    heads: tuple[str, ...]
    parts: tuple[TaskPart, ...]
    rates: tuple[Rate, ...]
    """The rows of the forest plot."""


def all_tasks(summaries: Sequence[Summary]) -> Iterator[AllTasks]:
    """Yield what a batch shows for each client, model and treatment that has several tasks.

    Of a single task its benchmark says everything, and nothing is told here.

    Args:
        summaries: One for each batch.
    """
    for summary, across, rows in _groups(summaries):
        batch = f", batch {summary.batch}" if len(summaries) > 1 else ""
        yield _together(across, rows, title=f"{_title(across)}{batch}")


def doubted(summaries: Sequence[Summary]) -> frozenset[tuple[str, str, str]]:
    """Return where a difference is shown by itself, and not once adjusted for many tasks.

    Args:
        summaries: One for each batch.

    Returns:
        Batch, task and client of each.
    """
    return frozenset(
        (summary.batch, row.task, row.client)
        for summary, _, rows in _groups(summaries)
        for row in rows
        if row.left_out is None
        and row.verdict is Shown.NO_DIFFERENCE
        and row.delta_ci95 is not None
        and 0.0 not in row.delta_ci95
    )


def _groups(
    summaries: Sequence[Summary],
) -> Iterator[tuple[Summary, AcrossTasks, Sequence[TaskSummary]]]:
    for summary in summaries:
        # Where something is compared stands first: that is what a reader looks for.
        for across in sorted(summary.across_tasks, key=lambda across: across.treatment is None):
            rows = [row for row in summary.tasks if _group(row) == _group(across)]
            if len(rows) > 1:
                yield summary, across, rows


def _together(across: AcrossTasks, rows: Sequence[TaskSummary], *, title: str) -> AllTasks:
    configurations = _configurations(rows)
    return AllTasks(
        title=title,
        answer=_answer(across, title),
        facts=tuple(_facts(across, rows)),
        note=" ".join(_notes(across, rows)),
        heads=(*configurations, *_HEADS),
        parts=tuple(_part(row, configurations) for row in rows),
        rates=tuple(_rates(across)),
    )


def _group(one: AcrossTasks | TaskSummary) -> tuple[str, str | None, str | None]:
    return one.client, one.model, one.treatment


def _title(across: AcrossTasks) -> str:
    client = f"{across.client} ({across.model})" if across.model else across.client
    tasks = "All tasks" if across.treatment else "All tasks without a treatment,"
    return f"{tasks} with {client}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _answer(across: AcrossTasks, place: str) -> Answer:
    if not across.tasks:
        told = f"{place}: no task can be counted"
        return Answer(word="not compared", headline=told, sentence="Each says why below.")
    weighs = "Each task weighs the same."
    tasks = _counted(across.tasks, "task")
    if across.delta is None:
        return Answer(
            word="one configuration",
            headline=f"{place}: nothing is compared",
            sentence=f"Mean rates over {tasks}. {weighs}",
        )
    treatment, interval = across.treatment or "", across.delta_ci95
    mean = f"The mean difference over {tasks} is {points(across.delta)}"
    if across.verdict is None or interval is None:
        return Answer(
            word="too few tasks",
            headline=f"{place}: too few tasks to tell whether {treatment} helped",
            sentence=f"{mean}; below {LEAST_TASKS} tasks it has no interval, so read each task.",
        )
    zero = "includes" if 0.0 in interval else "leaves out"
    bounds = f"95 % interval from {points(interval.low)} to {points(interval.high)}"
    return Answer(
        word=WORDS[across.verdict],
        headline=f"{place}: {told_verdict(across.verdict, treatment, across.delta)}",
        sentence=f"{mean}, {bounds}: it {zero} 0. {weighs}",
    )


def _facts(across: AcrossTasks, rows: Sequence[TaskSummary]) -> Iterator[tuple[str, Number]]:
    """Yield each number of the answer; those of trials count where their task does."""
    if across.delta is not None:
        yield "mean difference", told_points(across.delta)
        yield from _ends(across.delta_ci95, "95 % interval", signed=True)
    for name, rate in across.configurations.items():
        yield f"mean rate {name}", told_rate(rate.success_rate)
        if across.delta is None:
            yield from _ends(rate.ci95, "95 % interval", signed=False)
    trials = sum(
        rate.eligible for row in rows if not row.left_out for rate in row.configurations.values()
    )
    yield "tasks that count", _count(across.tasks)
    yield "eligible trials", _count(trials)


def _ends(interval: Interval | None, name: str, *, signed: bool) -> Iterator[tuple[str, Number]]:
    if interval is not None:
        yield f"{name} from", told_end(interval, "low", signed=signed)
        yield f"{name} to", told_end(interval, "high", signed=signed)


def _count(number: int) -> Number:
    return Number(value=number, text=f"{number:,}")


def _notes(across: AcrossTasks, rows: Sequence[TaskSummary]) -> Iterator[str]:
    for word in ("helped", "harmed"):
        found = [row.task for row in rows if row.verdict == word and row.left_out is None]
        if found:
            yield f"{word.capitalize()}, adjusted for the number of tasks: {', '.join(found)}."
    compared = [row for row in rows if row.p_value_holm is not None]
    if compared and all(row.verdict not in ("helped", "harmed") for row in compared):
        yield "No single task differs once adjusted for the number of tasks."
    if across.left_out:
        yield f"Not counted: {', '.join(across.left_out)}."


_HEADS = (
    "difference, points",
    "95 % from",
    "95 % to",
    "p",
    "p adjusted",
    "p matched",
    "eligible trials",
)


def _configurations(rows: Sequence[TaskSummary]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row.configurations))


def _part(row: TaskSummary, configurations: Sequence[str]) -> TaskPart:
    rates = (row.configurations.get(name) for name in configurations)
    differences = (
        told_points(row.delta),
        told_end(row.delta_ci95, "low", signed=True),
        told_end(row.delta_ci95, "high", signed=True),
    )
    matched = row.matched.p_value if row.matched else None
    eligible = sum(rate.eligible for rate in row.configurations.values())
    return TaskPart(
        task=row.task,
        cells=(
            *(told_rate(rate.success_rate if rate else None) for rate in rates),
            *map(_bare, differences),
            *(_chance(p_value) for p_value in (row.p_value, row.p_value_holm, matched)),
            _count(eligible),
        ),
        word=_word(row),
    )


def _bare(difference: Number) -> Number:
    """Return a difference without its unit, which the head of its column names."""
    return replace(difference, text=difference.text.removesuffix(" points"))


def _chance(p_value: float | None) -> Number:
    if p_value is None:
        return Number(value=None, text=UNKNOWN)
    return Number(value=p_value, text="< 0.001" if p_value < 0.001 else f"{p_value:.3f}")


def _word(row: TaskSummary) -> str:
    if row.left_out is not None:
        return f"not counted: {_LEFT_OUT[row.left_out]}"
    return "nothing is compared" if row.verdict is None else WORDS[row.verdict]


def _rates(across: AcrossTasks) -> Iterator[Rate]:
    treated = f"with-{across.treatment}"
    for name in sorted(across.configurations, key=lambda name: name != treated):
        rate = across.configurations[name]
        yield Rate(
            label=name,
            rate=rate.success_rate,
            interval=rate.ci95,
            is_treated=name == treated,
            difference=across.delta if name == treated else None,
            difference_interval=across.delta_ci95 if name == treated else None,
        )

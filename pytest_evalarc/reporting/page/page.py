"""The report page: one HTML file that needs no network and runs no foreign text."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.reporting.documents import write_text
from pytest_evalarc.reporting.page import faults, words
from pytest_evalarc.reporting.page.across import AllTasks, all_tasks, doubted
from pytest_evalarc.reporting.page.figures import causes, figures
from pytest_evalarc.reporting.page.gather import Gathered, TrialsPart, gather
from pytest_evalarc.reporting.page.plots import Point, Rate, forest_plot, strip_plot
from pytest_evalarc.reporting.page.trial import MOST_OPENED, UNKNOWN, Allowance, Sources

_HERE = Path(__file__).parent
TEXT_CHARACTERS = 4000
"""Of one foreign text outside the sections of trials."""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot with what it shows; its texts are escaped."""

    title: str
    svg: Markup


def write_page(folders: Sequence[Path], file: Path, sources: Sources) -> Gathered:
    """Write the report page of folders of results, and return what it was made from.

    Args:
        folders: As for `gather`.
        file: The page; the folder that it lies in is made where it is missing.
        sources: Where clients and tasks come from.

    Raises:
        DocumentError: The page cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be made: {error.strerror or error}"
        raise DocumentError(str(file.parent), problem, "name another place") from error
    gathered = gather(folders, sources)
    write_text(file, page(gathered, sources.allowance))
    return gathered


def page(gathered: Gathered, left: Allowance) -> str:
    """Return the page as HTML; equal results give equal text.

    Args:
        gathered: What it tells.
        left: What was left of the page's room once all was gathered.
    """
    style, script = (_own(name) for name in ("style.css", "page.js"))
    template = _environment().get_template("page.html.j2")
    answers = [words.answer(part.benchmark) for part in gathered.trials]
    together = list(all_tasks(gathered.summaries))
    return template.render(
        gathered=gathered,
        title=_title(gathered),
        answers=list(zip(gathered.trials, answers, strict=True)),
        together=together,
        doubted=doubted(gathered.summaries),
        compared=sum(answer.word in words.COMPARED for answer in answers),
        forest=_forest(gathered, together),
        linked=left.linked,
        unopened=left.unopened,
        opened=MOST_OPENED,
        words=words,
        figures=figures,
        causes=causes,
        strips=strips,
        heat=faults.heat,
        unknown=UNKNOWN,
        style=style,
        script=script,
        policy=_policy(style, script),
    )


@cache
def _environment() -> Environment:
    """Return what templates are compiled in, which takes longer than most pages."""
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Data is made safe for its element where it becomes JSON; numbers stand as JSON has them.
    environment.filters |= {"json_element": Markup, "exact": json.dumps}
    return environment


def _own(name: str) -> Markup:
    return Markup(_HERE.joinpath(name).read_text("utf-8"))


def _shown(value: object) -> object:
    """Return what a template prints: foreign text loses what steers a reader's eye."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, limit=TEXT_CHARACTERS)
    return UNKNOWN if value is None else value


def _policy(style: str, script: str) -> str:
    """Return what a browser may do with this page: its own style and script, and nothing else.

    Foreign text is escaped; should a way through ever be found, it would still not run.
    """
    allowed = {"style-src": style, "script-src": script}
    hashes = "; ".join(f"{kind} '{_digest(text)}'" for kind, text in allowed.items())
    return f"default-src 'none'; {hashes}; img-src data:; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _title(gathered: Gathered) -> str:
    tasks = dict.fromkeys(
        [
            *(part.plan.task.name for part in gathered.trials),
            *(audit.task.name for audit in gathered.audits),
            *(document.task.name for document in gathered.evaluations),
        ]
    )
    return ", ".join(list(tasks)[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")


# Plots.


def _forest(gathered: Gathered, together: Sequence[AllTasks]) -> Markup | None:
    groups: dict[str, Sequence[Rate]] = {
        found.title: found.rates for found in together if found.rates
    }
    groups |= {
        f"{part.plan.task.name}, {part.plan.client}": list(rates(part.benchmark))
        for part in gathered.trials
    }
    return Markup(forest_plot(groups)) if groups else None


def rates(benchmark: Benchmark) -> Iterator[Rate]:
    """Yield the rows of the forest plot, the treatment's first and its difference with it."""
    sides = words.sides(benchmark)
    treated = sides[0] if sides else None
    is_compared = words.answer(benchmark).word in words.COMPARED
    delta = benchmark.delta if is_compared else None
    for name in sorted(benchmark.configurations, key=lambda name: name != treated):
        counted = benchmark.configurations[name]
        yield Rate(
            label=name,
            rate=counted.success_rate,
            interval=counted.ci95,
            is_treated=name == treated,
            reason="no eligible trial",
            difference=delta.success_rate if delta and name == treated else None,
            difference_interval=delta.success_rate_ci95 if delta and name == treated else None,
        )


def strips(part: TrialsPart, name: str) -> list[Plot]:
    """Return a plot for each cost that a trial of the part told: seconds, tokens, dollars."""
    plots = []
    measures = {
        "agent_secs": ("seconds of the session", "elapsed_s"),
        "tokens": ("tokens", "tokens"),
        "cost_usd": ("cost in US dollars", "cost_usd"),
    }
    for key, (title, attribute) in measures.items():
        rows = {
            configuration: [
                Point(value=value, word=row.outcome.value if row.outcome else "")
                for row in part.trials
                if row.entry.configuration == configuration
                and row.is_eligible
                and (value := getattr(row, attribute)) is not None
            ]
            for configuration in part.benchmark.configurations
        }
        if any(rows.values()):
            means = {
                configuration: getattr(counted.cost.eligible, key).mean
                for configuration, counted in part.benchmark.configurations.items()
            }
            svg = strip_plot(f"{name}-{key}", title, rows, means)
            plots.append(Plot(title=title, svg=Markup(svg)))
    return plots

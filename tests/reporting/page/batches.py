"""Results of a batch and an audit as files, made without running anything.

```python
batch = Batch(tmp_path, with_={"succeeded": 8, "failed": 2}, without={"succeeded": 2, "failed": 8})
html = batch.page()
```
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.manifest import read_manifest
from pytest_evalarc.grading.submission import Submission, keep
from pytest_evalarc.model.audit import ControlDoc
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.grading import CheckRow, Grading, StepRow
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.planned import Execution, Outcome, PlannedTrial
from pytest_evalarc.model.task import TaskRef
from pytest_evalarc.model.transcript import Usage
from pytest_evalarc.model.trial import Decision, Expectations, SkillFacts
from pytest_evalarc.reporting.batch import write_document
from pytest_evalarc.reporting.page.gather import batch_folders
from pytest_evalarc.reporting.page.page import write_page
from pytest_evalarc.reporting.page.trial import Allowance, Sources
from pytest_evalarc.reporting.summary import write_summary
from pytest_evalarc.runs.draft import Draft
from pytest_evalarc.runs.plan import make_audit_plan
from tests.evals import Evals

DIMENSIONS = {"adds": "sums", "empty": "edges"}
CALL = {"type": "tool_call", "id": "1", "kind": "edit", "name": "edit", "target": "app/__init__.py"}
SKILL = {"type": "tool_call", "id": "2", "kind": "skill", "name": "skill", "target": "use-numbers"}


def stream(said: str = "I add them up.", result: str = "edited") -> list[dict[str, Any]]:
    """Return the events of a session that edits one file."""
    return [
        {"type": "start", "format": "evalarc.stream.v1", "cwd": "/run/project", "skills": ["tidy"]},
        SKILL,
        {"type": "tool_result", "id": "2", "is_error": False, "content": "Use sum()."},
        CALL,
        {"type": "tool_result", "id": "1", "is_error": False, "content": result},
        {"type": "response", "text": said},
        {"type": "completion", "is_error": False},
    ]


def graded(*failing: str, digest: str = "a", **facts: Any) -> Grading:
    """Return a grading of the small task in which these checks fail."""
    rows = [
        CheckRow(
            check=check,
            verdicts={dimension: check not in failing},
            status="failed" if check in failing else "passed",
            answered=True,
            wall_time_s=0.25,
            detail="it gave -1" if check in failing else "",
        )
        for check, dimension in DIMENSIONS.items()
    ]
    told: dict[str, Any] = {
        "submission_sha256": digest * 64,
        "grader_sha256": "b" * 64,
        "checks_sha256": "d" * 64,
        "status": "graded",
        "steps": (StepRow(name="build", status="pass", wall_time_s=0.5),),
        "rows": tuple(rows),
        "isolation": IsolationRecord(level="enforced", sandbox="bwrap", version="0.12.0"),
    }
    return Grading(**{**told, **facts})


@dataclass
class Batch:
    """A batch of the small task, whose trials end as they are told."""

    root: Path
    with_: Mapping[str, int] = field(default_factory=lambda: {"succeeded": 8, "failed": 2})
    without: Mapping[str, int] = field(default_factory=lambda: {"succeeded": 2, "failed": 8})
    events: Sequence[Mapping[str, Any]] = field(default_factory=stream)
    solution: str = "def total(*values):\n    return sum(values)\n"
    output: str = "1 passed\n"
    evidence: str = "the transcript shows its load"
    is_enforced: bool = True
    has_sessions: bool = True

    def __post_init__(self) -> None:
        self._counted: dict[str, int] = {}
        self.folder.mkdir(parents=True)
        write_model(self.folder / "plan.json", self.evals.plan)
        for name, endings in (("with-skills", self.with_), ("without-skills", self.without)):
            words = [word for word, count in endings.items() for _ in range(count)]
            entries = [entry for entry in self.evals.plan.trials if entry.configuration == name]
            for entry, word in zip(entries, words, strict=False):
                self.write_trial(entry, Outcome(word))

    @cached_property
    def evals(self) -> Evals:
        trials = max(sum(self.with_.values()), sum(self.without.values()))
        return Evals(self.root, options={"trials": trials})

    @property
    def folder(self) -> Path:
        return self.evals.folder

    @property
    def results(self) -> Path:
        return self.evals.results

    def write_trial(self, entry: PlannedTrial, outcome: Outcome) -> None:
        """Write all that a trial keeps."""
        folder = self.folder / entry.folder
        (folder / "grading").mkdir(parents=True)
        draft = Draft(plan=self.evals.plan, entry=entry, client=self.evals.known_client)
        for name, value in self._facts(entry, outcome).items():
            setattr(draft, name, value)
        write_model(folder / "result.json", draft.result())
        if not self.has_sessions:
            return
        lines = "".join(json.dumps(event) + "\n" for event in self.events)
        (folder / "transcript.jsonl").write_text(lines, "utf-8")
        (folder / "grading/adds.log").write_text(self.output, "utf-8")
        left = self.root / "left" / entry.folder
        (left / "app").mkdir(parents=True)
        (left / "app/__init__.py").write_text(self.solution, "utf-8")
        (left / "README.md").write_text("An app.\n", "utf-8")
        keep(Submission(root=left, manifest=read_manifest(left)), folder)

    def _facts(self, entry: PlannedTrial, outcome: Outcome) -> dict[str, Any]:
        level = "enforced" if self.is_enforced else "exploratory"
        ended: dict[str, Any] = {
            "execution": Execution.COMPLETED,
            "elapsed_s": 10.0 + 3 * entry.trial,
            "started_at": datetime(2026, 5, 1, 12, tzinfo=UTC),
            "usage": Usage(
                input_tokens=1000 * entry.trial, output_tokens=250, cost_usd=0.01 * entry.trial
            ),
            "grading": graded("adds") if outcome is Outcome.FAILED else graded(),
            "isolation": IsolationRecord(level=level, sandbox="bwrap", version="0.12.0"),
            "policy": {"network": {"allowedDomains": []}},
        }
        if entry.configuration == "with-skills":
            verdict = "inconclusive" if outcome is Outcome.INCONCLUSIVE else "pass"
            ended["expectations"] = self._expectations(verdict)
        escaped = Cause(kind="escape", detail="it read a secret")
        broken = graded(status="infrastructure_error", cause=Cause(kind="full"), rows=())
        return {
            Outcome.SETUP_FAILURE: {"setup": Cause(kind="preparation", detail="no disk")},
            Outcome.CANCELLED: {"cancellation": Cause(kind="worker_crash", detail="it died")},
            Outcome.EXCLUDED_ISOLATION: {**ended, "findings": (escaped,)},
            Outcome.EXCLUDED_GRADING: {**ended, "grading": broken},
        }.get(outcome, ended)

    def _expectations(self, verdict: Any) -> Expectations:
        decision = Decision(name="used-use-numbers", verdict=verdict, rests_on=(self.evidence,))
        skills = {"use-numbers": SkillFacts(used=verdict, observed_load="loaded")}
        return Expectations(skills=skills, decisions=(decision,))

    def write_audit(self, **controls: Grading) -> Path:
        """Write an audit whose two faults are detected, unless a control is given otherwise."""
        task, folder = self.evals.task, self.evals.batch.folders.audit("tiny")
        usual = {
            "reference": graded(),
            "reference-repeat": graded(),
            "starter": graded("adds", "empty", digest="1"),
            "first-only": graded("adds", digest="2"),
            "empty-is-one": graded("empty", digest="3"),
        }
        (folder / "rows").mkdir(parents=True)
        write_model(
            folder / "plan.json", make_audit_plan(task, self.evals.request, sandbox="bwrap")
        )
        for name, found in {**usual, **controls}.items():
            document = ControlDoc(
                schema_version=SCHEMA_VERSION, task=task.ref, control=name, grading=found
            )
            write_model(folder / "rows" / f"{name}.json", document)
        return folder

    def document(self) -> Any:
        """Return benchmark.json as it is written."""
        _, path = write_document(self.folder)
        return json.loads(path.read_bytes())

    def write_page(self, file: Path, **facts: Any) -> Any:
        """Write the page, and return what it was made from."""
        sources = Sources(
            clients=self.evals.registry.clients.get,
            task_of=facts.pop("task_of", self.task_of),
            packs=facts.pop("packs", self.evals.registry.packs.get),
            page_folder=file.parent,
            allowance=facts.pop("allowance", Allowance()),
        )
        folders = batch_folders(self.results, facts.pop("batch", None))
        assert not facts
        return write_page(folders, file, sources)

    def task_of(self, ref: TaskRef) -> Any:
        return self.evals.task if ref == self.evals.task.ref else None

    def page(self, **facts: Any) -> Page:
        """Return the page, parsed."""
        file = self.root / "page.html"
        self.write_page(file, **facts)
        return Page(file.read_text("utf-8"))


@dataclass
class Several:
    """One batch of several tasks, each with so many of ten trials that succeeded on each side."""

    root: Path
    succeeded: Mapping[str, tuple[int, int]]
    """With the treatment and without it, by task."""
    trials: int = 10

    def __post_init__(self) -> None:
        for task, (treated, untreated) in self.succeeded.items():
            self._write(task, treated, untreated)

    def _write(self, task: str, treated: int, untreated: int) -> None:
        batch = Batch(
            self.root / "made" / task,
            with_={"succeeded": treated, "failed": self.trials - treated},
            without={"succeeded": untreated, "failed": self.trials - untreated},
            has_sessions=False,
        )
        folder = self.results / task / "oracle" / "b1"
        shutil.copytree(batch.folder, folder)
        for path in folder.rglob("*.json"):
            document = json.loads(path.read_bytes())
            document["task"]["name"] = task
            path.write_text(json.dumps(document), "utf-8")
        self.made = batch

    @property
    def results(self) -> Path:
        return self.root / "results"

    def summary(self) -> Any:
        """Return the batch's summary.json as it is written."""
        _, path = write_summary(self.results, "b1")
        return json.loads(path.read_bytes())

    def write_page(self, file: Path, batch: str | None = None) -> Any:
        """Write the page, and return what it was made from."""
        sources = Sources(
            clients=self.made.evals.registry.clients.get,
            task_of=lambda _: None,
            packs=self.made.evals.registry.packs.get,
            page_folder=file.parent,
        )
        return write_page(batch_folders(self.results, batch), file, sources)

    def page(self, batch: str | None = None) -> Page:
        """Return the page, parsed."""
        file = self.root / "page.html"
        self.write_page(file, batch)
        return Page(file.read_text("utf-8"))


VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page as a parser sees it: elements in order, each with its attributes and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert not self._open, f"{self._open[-1].name} is never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].name == tag, f"</{tag}> in <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, name: str, **attributes: str) -> list[Element]:
        """Return the elements of a name with these attributes, `class_` for `class`."""
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.name == name
            and all(element.attributes.get(key) == value for key, value in wanted.items())
        ]

    def below(self, parent: Element, name: str) -> list[Element]:
        """Return the elements of a name in another one."""
        return [each for each in self.elements if parent in each.parents and each.name == name]

    @property
    def trials(self) -> dict[str, Any]:
        """What each trial's section is made of, by the id of its data."""
        found = self.all("script", type="application/json")
        return {element.attributes["id"]: json.loads(element.text) for element in found}

    def table(self, caption: str, number: int = 0) -> dict[str, list[Element]]:
        """Return the cells of the table with this caption, by the head of each row."""
        found = [each for each in self.all("caption") if each.text == caption][number]
        table = found.parents[-1]
        rows: dict[str, list[Element]] = {}
        for row in self.below(table, "tr"):
            heads = [each for each in self.below(row, "th") if each.attributes["scope"] == "row"]
            if heads:
                rows[heads[0].text.strip()] = self.below(row, "td")
        return rows

    def numbers(self, caption: str, number: int = 0) -> dict[str, list[float | None]]:
        """Return the exact numbers in such a table; None where a cell has none."""

        def exact(cell: Element) -> float | None:
            found = self.below(cell, "data")
            return json.loads(found[0].attributes["value"]) if found else None

        return {
            head: [exact(cell) for cell in cells]
            for head, cells in self.table(caption, number).items()
        }


class Element:
    """An element with what is in it."""

    def __init__(
        self, name: str, attributes: Mapping[str, str], parents: tuple[Element, ...]
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.parents = parents
        self.text = ""

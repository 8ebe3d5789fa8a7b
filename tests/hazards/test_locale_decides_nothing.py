"""One odd byte, or a session in the C locale, and a run ends or reads as another failure.

A half surrogate aborts the write of a result, a probe's output in another code page is taken for a
failure of the provider. UKGovernmentBEIS/inspect_ai#2316, strands-rl/strands-env#211.
"""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

LOCALES = {
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "POSIX": {"LC_ALL": "POSIX", "LANG": "", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "none": {"LC_ALL": "xx_YY.latin1", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
}
SAYS = r"printf 'caf\351 \303\251 \360\235\204\236 \355\240\265'"
"""In Latin-1, in UTF-8, beyond 16 bits, and as a half surrogate."""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
def test_results_are_the_same_in_every_locale(
    project: Project, monkeypatch, locale: dict[str, str], workers: tuple[str, ...]
) -> None:
    """What a check says is told as it was, in every document, and decides nothing else."""
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    project.edit('prompt = "Make the', 'prompt = "Gr\u00f6\u00dfe \U0001d11e: make the')
    project.write(
        "evals/tasks/hello/checks/greets.sh",
        f"grep -q hello src/greeting || {{ {SAYS}; false; }}\n",
    )

    session = project.pytest(
        *workers,
        *("evals", "--evalarc-client=careless", "--evalarc-client=nop", "-q"),
        *("--junitxml=junit.xml", "--evalarc-html=page.html"),
    )

    assert session.ret == 0
    assert project.document("audit.json")["mutation_score"] == 1.0
    rates = [
        side["success_rate"]
        for document in project.documents("benchmark.json").values()
        for side in document["configurations"].values()
    ]
    assert sorted(rates) == [0.0, 0.0, 0.0, 1.0]
    details = {
        row["detail"]
        for result in project.trial_results().values()
        for row in result["gradings"][0]["rows"]
        if row["check"] == "greets" and row["status"] == "failed"
    }
    assert details == {"caf\ufffd \u00e9 \U0001d11e \ufffd\ufffd\ufffd"}
    ElementTree.parse(project.root / "junit.xml")
    assert "Gr\u00f6\u00dfe \U0001d11e" in (project.root / "page.html").read_text("utf-8")


def test_a_tree_of_names_in_no_encoding_is_kept_and_graded(project: Project) -> None:
    """An agent may leave any bytes as a name; they are listed, and judged like all others."""
    script = r"d=$(printf 'caf\351'); mkdir src/$d; echo x > src/$d/$(printf '\355\240\265')"
    text = (project.root / "shell.py").read_text()
    project.write("shell.py", text.replace('WORK = "', f'WORK = {script!r} + "\\n', 1))

    session = project.pytest("evals", "-m", "evalarc_trial", "--evalarc-client=careless", "-q")

    assert session.ret == 0
    assert {each["outcome"] for each in project.trial_results().values()} == {"succeeded", "failed"}
    (kept, *_) = project.results.rglob("submission.json")
    assert "caf" in json.dumps(json.loads(kept.read_bytes()))

"""What a treatment offers, and what may be expected of it."""

from __future__ import annotations

import pytest

from tests.tasks.project import LABEL, Project

SKILL = "---\nname: x\ndescription: Use it.\n---\n"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            'installed = ["use-store"]\nnot_installed = ["use-store"]',
            'not_installed: names "use-store", as `installed` does',
        ),
        (
            'used = ["use-store"]\nnot_used = ["use-store"]',
            'not_used: names "use-store", as `used` does',
        ),
        (
            'used = ["use-store"]\nnot_installed = ["use-store"]',
            'not_installed: names "use-store", as `used` does',
        ),
    ],
)
def test_expectations_that_contradict_each_other_are_told(
    project: Project, lines: str, told: str
) -> None:
    """No trial could meet both, so every treated trial would fail."""
    text = project.read()
    head, rest = text.partition("[expected]\n")[::2]
    project.write(
        LABEL,
        f"{head}[expected]\n{lines}\n[checks.persists]{rest.partition('[checks.persists]')[2]}",
    )

    (sentence,) = project.problems()

    assert sentence == (f"{LABEL}:{project.line('not_')} [expected] {told}; drop it from one")


def test_a_skill_may_be_unwanted_wherever_it_lies(project: Project) -> None:
    """That a treatment does not bring in what the task does not need is an expectation too."""
    project.edit('not_used = ["tune-store"]', 'not_installed = ["tune-store"]')

    assert project.load().expected.not_installed == ("tune-store",)


def test_a_skill_can_be_named_where_it_lives(project: Project) -> None:
    """Most skills lie in a project of their own, and are not copied to be tried."""
    project.write(".claude/skills/lonely/SKILL.md", SKILL)
    project.edit('["guide"]', '["guide", ".claude/skills/lonely"]')
    project.edit('\nused = ["use-store"]', '\nused = ["use-store", "lonely"]')

    task = project.load()

    assert [(plugin.name, plugin.root) for plugin in task.plugins] == [
        ("guide", project.root / "evals/plugins/guide"),
        ("lonely", project.root / ".claude/skills/lonely"),
    ]


def test_two_plugins_that_offer_one_skill_are_told(project: Project) -> None:
    """Skills share one folder, and one would replace the other without a word."""
    project.write("evals/plugins/other/skills/Use-Store/SKILL.md", SKILL)
    project.edit('["guide"]', '["guide", "other"]')

    (sentence,) = project.problems()

    assert 'plugins: offers the skill "use-store" more than once, by guide, other' in sentence


def test_a_misspelt_plugin_is_told_without_its_skills(project: Project) -> None:
    """One typo is one sentence: what the plugin would offer follows from mending it."""
    project.edit('["guide"]', '["giude"]')

    assert project.problems() == [
        f"{LABEL}:{project.line('plugins =')} plugins: "
        'names "giude", which is neither in evals/plugins nor a folder of the project; '
        "nearest: guide"
    ]


def test_a_plugin_outside_the_project_is_refused(project: Project) -> None:
    """A link would make the task's digest depend on another machine's files."""
    (project.root / "out").symlink_to("/usr")
    project.edit('["guide"]', '["guide", "out"]')

    (sentence,) = project.problems()

    assert 'names "out", which leads out of the project' in sentence


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("# Use the store\n", "no front matter"),
        ("---\nname: use-store\n# never closed\n", "no front matter"),
        ("---\nname: use-store\n---\n", "no description"),
        ("---\ntitle: Use the store\n---\n", "no name and no description"),
        ("", "no front matter"),
    ],
)
def test_a_skill_that_no_client_would_offer_is_told(
    project: Project, content: str, what: str
) -> None:
    """Clients pass over it without a word, and the treated arm would be a second baseline."""
    project.write("evals/plugins/guide/skills/use-store/SKILL.md", content)

    (sentence,) = project.problems()

    assert f'plugins: names "guide", whose skill "use-store" has {what}' in sentence
    assert sentence.endswith("begin it with ---, name: …, description: …, ---")


def test_front_matter_is_found_with_any_line_ends_and_a_mark(project: Project) -> None:
    """Editors on other systems write both, and every client reads them."""
    content = "\ufeff---\r\nname: 'use-store'\r\ndescription: >\r\n  Use it.\r\n---\r\n"
    project.write("evals/plugins/guide/skills/use-store/SKILL.md", content)

    assert project.load().plugins[0].name == "guide"


@pytest.mark.parametrize("value", ["false", "1", "1.5", '"guide"'])
def test_plugins_that_are_no_list_are_told_once(project: Project, value: str) -> None:
    """What such plugins would offer is not known, so nothing more is said of what is expected."""
    text = project.read()
    lines = [line for line in text.splitlines() if line.startswith("plugins = ")]
    project.edit(lines[0], f"plugins = {value}")

    (sentence,) = project.problems()

    assert "plugins: must be a list of strings" in sentence

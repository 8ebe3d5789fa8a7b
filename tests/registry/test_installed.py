"""The registry of a program that is no pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_evalarc.errors import UsageError
from pytest_evalarc.registry.installed import installed
from tests.distribution import install
from tests.evals import registry

OFFERS = """\
import pytest


@pytest.fixture
def unrelated():
    return 1


def pytest_addoption(parser):
    raise AssertionError("this is no pytest")


def pytest_evalarc_packs():
    return {"%s": lambda: "a pack"}
"""


def test_it_knows_what_pytest_knows_without_any_package() -> None:
    """Both hear the built-in things through the same hooks."""
    ours, pytests = installed(), registry()

    for kind in ("clients", "treatments", "toolchains", "packs", "sandboxes"):
        assert getattr(ours, kind).names == getattr(pytests, kind).names


@pytest.mark.parametrize("mark", ["", "@pytest.hookimpl\n", "@pytest.hookimpl(trylast=True)\n"])
def test_an_installed_package_offers_a_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    """It need not do anything for this beyond what makes it a plugin of pytest."""
    source = OFFERS.replace("def pytest_evalarc", f"{mark}def pytest_evalarc") % "acme-orders"
    install(monkeypatch, tmp_path, "acme", source)

    assert installed().packs.get("acme-orders") == "a pack"  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    "requirement",
    ["pytest-evalarc", "pytest_evalarc>=0.1", "Pytest.EvalArc [x]", 'pytest-evalarc; extra == "x"'],
)
def test_a_package_may_spell_its_requirement_as_it_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requirement: str
) -> None:
    """Names of packages have many spellings, and an extra is a requirement too."""
    install(monkeypatch, tmp_path, "acme", OFFERS % "acme-orders", requires=requirement)

    assert "acme-orders" in installed().packs.names


@pytest.mark.parametrize("requirement", ["pytest", "pytest-evalarc-extras", "x-pytest-evalarc"])
def test_a_plugin_that_does_not_need_us_is_not_even_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requirement: str
) -> None:
    """Others may be slow to import, or expect a pytest around them."""
    source = "raise AssertionError('imported')"
    install(monkeypatch, tmp_path, "stranger", source, requires=requirement)

    assert installed().packs.names == registry().packs.names


def test_one_module_under_two_names_offers_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its own offer would collide with itself."""
    install(monkeypatch, tmp_path, "acme", OFFERS % "a", entry_points=("one", "two"))

    assert installed().packs.names[-1:] == ("a",)


def test_a_name_offered_by_two_packages_is_told_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pytest would end its session for the same reason."""
    install(monkeypatch, tmp_path, "acme", OFFERS % "orders")
    install(monkeypatch, tmp_path, "zenith", OFFERS % "orders")

    with pytest.raises(UsageError, match="'orders': is offered by both acme and zenith"):
        installed()


def test_a_plugin_that_cannot_be_imported_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is foreign code, and the user can uninstall it."""
    install(monkeypatch, tmp_path, "acme", "import no_such_module", entry_points=("orders",))

    with pytest.raises(UsageError) as caught:
        installed()

    assert str(caught.value) == (
        "plugin 'orders' of the package acme: cannot be imported: ModuleNotFoundError: "
        "No module named 'no_such_module'; mend it, or uninstall the package"
    )


def test_it_needs_no_pytest() -> None:
    """A console command is no test session, and starts in less time than one."""
    code = (
        "import sys; from pytest_evalarc.registry.installed import installed; installed();"
        "print([name for name in sys.modules if name in ('pytest', '_pytest')])"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"

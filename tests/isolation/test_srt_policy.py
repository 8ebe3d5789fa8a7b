from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from pytest_evalarc.isolation import srt_policy
from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.isolation.srt_policy import (
    Filesystem,
    Network,
    Ripgrep,
    Settings,
    filesystem_of,
    is_host,
    is_loopback,
    problems,
    problems_of_env,
)


def settings(policy: Policy) -> Settings:
    return Settings(
        filesystem=filesystem_of(policy),
        network=Network(allowed_domains=policy.domains),
        bwrap_path="/usr/bin/bwrap",
        socat_path="/usr/bin/socat",
        ripgrep=Ripgrep(command="/usr/bin/rg"),
    )


def told(policy: Policy) -> tuple[str, ...]:
    return problems(settings(policy), policy)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for name in ("project", "home", "bin", "fixtures/a", "fixtures/b"):
        (tmp_path / "run" / name).mkdir(parents=True)
    return tmp_path / "run"


def test_everything_is_denied_that_is_not_named(run: Path) -> None:
    """To srt the rest would be readable, as what another user has left in a shared folder."""
    files = filesystem_of(Policy(read=(run,), deny_read=(run.parent,)))

    assert files.deny_read[0] == "/"
    assert str(run.parent) in files.deny_read
    assert {"/usr", str(run)} <= set(files.allow_read)
    assert (files.allow_write, files.deny_write) == ((), ())


def test_a_readable_folder_is_named_by_all_in_it_but_what_is_writable(run: Path) -> None:
    """Srt mounts what is readable last: over the writable folders, which nobody could write."""
    files = filesystem_of(Policy(read=(run,), write=(run / "project", run / "fixtures" / "b")))

    ours = {path for path in files.allow_read if path.startswith(f"{run}/")}
    assert str(run) not in files.allow_read
    assert ours == {f"{run}/bin", f"{run}/home", f"{run}/fixtures/a"}
    assert files.allow_write == (f"{run}/fixtures/b", f"{run}/project")


def test_a_denial_wins_over_the_same_path(run: Path) -> None:
    """To srt it would lose, and what is denied were shown."""
    policy = Policy(
        read=(run / "bin",), write=(run / "home",), deny_read=(run / "bin", run / "home")
    )

    files = filesystem_of(policy)

    assert not {f"{run}/bin", f"{run}/home"} & {*files.allow_read, *files.allow_write}


def test_paths_are_named_where_they_lead(run: Path) -> None:
    """A mount on a link is refused by some versions of bubblewrap and dropped by srt."""
    link = run.parent / "link"
    link.symlink_to(run / "fixtures")

    files = filesystem_of(Policy(read=(link,), deny_read=(link / "a",)), needed=(link / "b",))

    assert f"{run}/fixtures" in files.allow_read
    assert f"{run}/fixtures/a" in files.deny_read
    assert f"{run}/fixtures/b" in files.allow_read


def test_private_keys_of_the_machine_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """They lie beside the certificates that every client needs."""
    monkeypatch.setattr(srt_policy.os.path, "lexists", lambda path: path == "/etc/ssl/private")

    assert filesystem_of(Policy()).deny_read == ("/", "/etc/ssl/private")


def test_what_is_denied_and_not_there_is_told_where_it_could_appear(run: Path) -> None:
    """Srt drops it without a word, and whoever makes it later would show it."""
    later = run / "bin" / "later"

    assert told(Policy(read=(run,), deny_read=(later,))) == (
        f"{later} is denied and not there, and whoever makes it in {run} shows it",
    )


def test_what_is_denied_and_not_there_is_hidden_by_what_surrounds_it(run: Path) -> None:
    """Denials name every place where user data may lie, on any machine."""
    denied = (Path("/no/such/place"), run / "home" / "later", Path("/Users"))

    assert told(Policy(read=(run / "bin",), deny_read=denied)) == ()
    assert told(Policy(read=(run,), deny_read=(run / "bin", run / "bin" / "later"))) == ()


@pytest.mark.parametrize("name", ["a*", "a?", "[a]"])
def test_a_path_that_srt_takes_for_a_pattern_is_told(run: Path, name: str) -> None:
    """It would deny, or show, what nobody has named."""
    (run / name).mkdir()

    for policy in (Policy(read=(run / name,)), Policy(deny_read=(run / name,))):
        (problem,) = told(policy)
        assert f"the path {run / name} holds one of *?[]" in problem


def test_a_path_that_is_not_there_is_told(run: Path) -> None:
    """Srt would drop it, and a client find nothing where its program should be."""
    (problem,) = told(Policy(write=(run / "gone",)))

    assert problem == f"the path {run / 'gone'} is to be seen and is not there"


def test_a_link_beside_a_writable_folder_is_told(run: Path) -> None:
    """It can be shown only with the folder that holds it."""
    (run / "link").symlink_to("/etc/passwd")

    (problem,) = told(Policy(read=(run,), write=(run / "project",)))

    assert problem.startswith(f"the path {run / 'link'} is a link beside a writable folder")


@pytest.mark.parametrize(
    "entry",
    [
        *(
            "api.anthropic.com",
            "api.anthropic.com:443",
            "*.example.com",
            "localhost",
            "localhost:1",
        ),
        *("127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:8080", "a-b.c_d.example.com"),
    ],
)
def test_what_names_a_host(entry: str) -> None:
    """A name, the subdomains of one, or an address; each with a port if need be."""
    assert is_host(entry)


@pytest.mark.parametrize(
    "entry",
    [
        *("*", "*.com", "fake", "", ".a.b", "a.b.", "a..b", "-a.b", "a b.c", "http://a.b", "a.b/c"),
        *("a.b:0", "a.b:65536", "a.b:", "a.b:x", "::1", "::1:8080", "[::1", "[a.b]", "1.2.3"),
        *("256.0.0.1", "a.*.b", "a.b:1:2", "a.b\n"),
    ],
)
def test_what_names_no_host_is_told(entry: str) -> None:
    """Srt says so only when it has been started, and takes some for what nobody meant."""
    (problem,) = told(Policy(domains=(entry,)))

    assert "is neither a host" in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("entry", "is_it"),
    [
        *(("127.0.0.1:80", True), ("127.9.9.9", True), ("localhost:1", True), ("[::1]:1", True)),
        *(("10.0.0.1", False), ("api.example.com", False), ("[fe80::1]", False)),
    ],
)
def test_this_very_machine_is_known(entry: str, is_it: bool) -> None:
    """Srt exempts it from its proxy, so for a client to reach it the exemption must go."""
    assert is_loopback(entry) is is_it


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "NODE_OPTIONS", "LD_PRELOAD"])
def test_a_variable_that_srt_would_follow_is_told(name: str) -> None:
    """It is meant for the client, and srt stands outside of the sandbox."""
    (problem,) = problems_of_env({name: "x"}, Policy())

    assert problem == f"the variable {name} is for srt itself as well, and must not be set"


def test_a_folder_that_srt_opens_by_itself_must_be_writable_anyway(run: Path) -> None:
    """It makes some folders below a home writable, whether or not a rule says so."""
    policy = Policy(write=(run / "home",))
    inside = {"HOME": str(run / "home"), "TMPDIR": str(run / "home" / "tmp")}

    assert list(problems_of_env({}, policy)) == []
    assert list(problems_of_env(inside, policy)) == []
    assert len(list(problems_of_env({**inside, "TMPDIR": str(run)}, policy))) == 1
    assert len(list(problems_of_env({**inside, "HOME": "/root"}, policy))) == 1


def test_the_document_has_the_keys_that_srt_reads(run: Path) -> None:
    """It ignores any other, so that a misspelt rule would be none."""
    document = settings(Policy(read=(run,), domains=("a.example.com",))).to_json()

    assert isinstance(document, dict)
    assert set(document) == {"filesystem", "network", "bwrapPath", "socatPath", "ripgrep"}
    assert set(document["filesystem"]) == {"denyRead", "allowRead", "allowWrite", "denyWrite"}
    assert document["network"] == {"allowedDomains": ["a.example.com"], "deniedDomains": []}
    with pytest.raises(ValidationError):
        Filesystem.model_validate({**document["filesystem"], "denyReed": []})


def test_a_policy_without_problems_has_none(run: Path) -> None:
    """Else no trial could start."""
    policy = Policy(
        read=(run,), deny_read=(run.parent, Path("/root")), write=(run / "home", run / "project")
    )

    assert told(policy) == ()
    assert told(replace(policy, domains=("127.0.0.1:80",))) == ()

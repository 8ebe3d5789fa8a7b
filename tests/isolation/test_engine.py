"""How a container is started and what is refused, by the command line alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import engine as engine_module
from pytest_evalarc.isolation.command import Command, Names, Policy, Wrapped
from pytest_evalarc.isolation.engine import Engine
from pytest_evalarc.isolation.engine_program import HARNESS_LABEL, PLACE_LABEL, place
from pytest_evalarc.model.task import Limits

DIGITS = "0123456789abcdef" * 4
DOCKER = """{"ServerVersion": "28.2.2", "CgroupVersion": "2", "MemoryLimit": true,
"SwapLimit": true, "PidsLimit": true, "CpuCfsQuota": true,
"SecurityOptions": ["name=seccomp,profile=builtin"]}"""
PODMAN = """{"host": {"cgroupVersion": "v2", "cgroupControllers": ["cpu", "memory", "pids"],
"security": {"rootless": false}}, "version": {"Version": "5.4.0"}}"""
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
CLIENT = """#!/bin/sh
echo "$*" >> "$0.calls"
case $1 in
info) cat "$0.info"; exit "$(cat "$0.status")" ;;
image) echo "$(cat "$0.image")" ;;
rm) cat "$0.rm" >&2; exit 1 ;;
container) cat "$0.killed" ;;
esac
"""
LIMITS = Limits(memory_mib=256, processes=64, cpus=1.0, tmp_mib=16, disk_mib=100)


class Client:
    """A client whose engine says what a test wants."""

    def __init__(self, folder: Path, name: str, info: str) -> None:
        self.name = name
        self.path = folder / name
        self.path.write_text(CLIENT)
        self.path.chmod(0o755)
        self.says(
            info=info, status="0", image=DIGITS, rm="Error: No such container: it", killed="false"
        )
        self.engine = Engine(name, "an-image:1", environ={"PATH": f"{folder}:{os.defpath}"})

    def says(self, **answers: str) -> None:
        for what, answer in answers.items():
            self.path.with_name(f"{self.name}.{what}").write_text(answer)

    @property
    def calls(self) -> list[str]:
        return self.path.with_name(f"{self.name}.calls").read_text().splitlines()


@pytest.fixture
def docker(tmp_path: Path) -> Client:
    return Client(tmp_path, "docker", DOCKER)


@pytest.fixture
def podman(tmp_path: Path) -> Client:
    return Client(tmp_path, "podman", PODMAN)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "box").mkdir()
    (tmp_path / "kept").mkdir()
    return tmp_path / "box", tmp_path / "kept"


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(engine_module.os, "getegid", lambda: 1001)


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    handed: list[Path] = []
    monkeypatch.setattr(engine_module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine_module.os, "chown", lambda path, *_, **__: handed.append(path))
    return handed


def wrap(client: Client, folders: tuple[Path, Path]) -> Wrapped:
    box, kept = folders
    env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    command = Command(argv=("python3", "main.py"), cwd=Path("/candidate"), env=env)
    return client.engine.wrap(command, Policy(read=(box,), write=(kept,), limits=LIMITS))


def refused(client: Client, policy: Policy) -> InfrastructureError:
    with pytest.raises(InfrastructureError) as caught:
        client.engine.wrap(Command(argv=("x",), cwd=Path("/"), env={}), policy)
    return caught.value


def test_docker_is_told_every_bound(
    docker: Client, folders: tuple[Path, Path], as_root: list[Path]
) -> None:
    """No Docker may be at hand where this is tested, so its words are compared one by one."""
    box, kept = folders

    argv = wrap(docker, folders).argv

    name = argv[argv.index("--name") + 1]
    proxies = [
        word
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")
        for word in ("--env", f"{name}=", "--env", f"{name.lower()}=")
    ]
    assert list(argv) == [
        *(str(docker.path), "run", "--interactive", "--name", name),
        *("--pull=never", "--log-driver", "none", "--no-healthcheck"),
        *("--label", f"{PLACE_LABEL}={place()}", "--label", f"{HARNESS_LABEL}={os.getpid()}"),
        *("--network", "none", "--read-only", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges"),
        *proxies,
        *("--user", "65534:65534"),
        *("--pids-limit", "65", "--memory", "256m", "--memory-swap", "256m", "--cpus", "1"),
        *("--ulimit", "core=0:0", "--ulimit", "fsize=104857600:104857600"),
        *("--tmpfs", "/tmp:rw,noexec,nosuid,nodev,mode=1777,size=16m", "--shm-size", "16m"),
        *("--mount", f"type=bind,source={box},destination=/candidate,readonly"),
        *("--mount", f"type=bind,source={kept},destination=/state"),
        *("--workdir", "/candidate", "--entrypoint", "", "--env", "LANG=C.UTF-8"),
        f"sha256:{DIGITS}",
        *("/bin/sh", "-c", engine_module._INIT, "init", "python3", "main.py"),
    ]
    assert as_root == [kept]


def test_each_container_has_a_name_of_its_own(docker: Client, folders: tuple[Path, Path]) -> None:
    """Whoever is removed by name must not be another one."""
    started = [wrap(docker, folders).argv for _ in range(20)]

    names = {argv[argv.index("--name") + 1] for argv in started}
    assert len(names) == 20
    assert all(name.startswith("evalarc-") and len(name) == 40 for name in names)


def test_podman_is_told_to_be_as_strict_as_docker(
    podman: Client, folders: tuple[Path, Path], as_root: list[Path]
) -> None:
    """Left alone it makes more folders writable and hands on the proxies of the host."""
    argv = wrap(podman, folders).argv

    assert {"--read-only-tmpfs=false", "--http-proxy=false"} < set(argv)
    assert "HTTP_PROXY=" not in argv
    assert argv[argv.index("--user") + 1] == "65534:65534"


def test_podman_under_the_name_of_docker_is_known_by_what_it_answers(
    docker: Client, folders: tuple[Path, Path]
) -> None:
    """Many systems ship it so, and its own options must not be forgotten there."""
    docker.says(info=PODMAN)

    assert "--read-only-tmpfs=false" in wrap(docker, folders).argv


@pytest.mark.parametrize(
    ("rootless", "expected"),
    [
        ("true", ["--userns=keep-id:uid=65534,gid=65534", "--user", "65534:65534"]),
        ("false", ["--user", "1000:1001"]),
    ],
)
def test_what_a_candidate_writes_belongs_to_an_ordinary_harness(
    podman: Client, folders: tuple[Path, Path], as_user: None, rootless: str, expected: list[str]
) -> None:
    """A folder that another user filled could never be removed."""
    podman.says(info=PODMAN.replace("false", rootless))

    argv = list(wrap(podman, folders).argv)

    at = argv.index(expected[0])
    assert argv[at : at + len(expected)] == expected


def test_a_folder_may_have_any_name(docker: Client, tmp_path: Path) -> None:
    """A comma in it would end the field, and could add another mount."""
    box = tmp_path / 'a,readonly=false,"b'
    box.mkdir()

    argv = docker.engine.wrap(Command(argv=("x",), cwd=Path("/"), env={}), Policy(read=(box,))).argv

    quoted = str(box).replace('"', '""')
    assert f'type=bind,"source={quoted}",destination=/candidate,readonly' in argv


def test_a_candidate_is_told_the_names_of_the_container(docker: Client) -> None:
    """A path of the host would lead nowhere there."""
    host = Names(
        word="python",
        program="/opt/python",
        workspace=Path("/srv/copy"),
        state=Path("/srv/state"),
        reads=(Path("/opt"),),
        path=("/usr/bin",),
    )

    names = docker.engine.names(host)

    assert names.values == {"python": "python3", "workspace": "/candidate", "state": "/state"}
    assert (names.reads, names.path) == ((), None)


def test_an_image_is_looked_up_once(docker: Client, folders: tuple[Path, Path]) -> None:
    """A name that is given to another image meanwhile must not split one evaluation."""
    first = wrap(docker, folders).argv
    docker.says(image="f" * 64)
    second = wrap(docker, folders).argv

    assert f"sha256:{DIGITS}" in first
    assert f"sha256:{DIGITS}" in second
    assert docker.engine.record(LIMITS).image_id == f"sha256:{DIGITS}"
    assert len([call for call in docker.calls if call.startswith("image")]) == 1


def test_the_record_says_which_image_ran_and_what_bounds_it(docker: Client) -> None:
    """Results of different images, or of an engine that bounds nothing, are not compared."""
    record = docker.engine.record(LIMITS)

    assert (record.level, record.sandbox, record.version) == ("enforced", "docker", "28.2.2")
    assert (record.image, record.image_id) == ("an-image:1", f"sha256:{DIGITS}")
    assert record.limits == {
        "memory_mib": "cgroup-v2",
        "processes": "cgroup-v2",
        "cpus": "cgroup-v2",
        "tmp_mib": "tmpfs",
        "output_mib": "supervisor",
        "disk_mib": "rlimit, each file",
    }


@pytest.mark.parametrize(
    ("name", "info", "unbounded"),
    [
        ("docker", DOCKER, set()),
        ("docker", DOCKER.replace('"SwapLimit": true', '"SwapLimit": false'), {"memory_mib"}),
        ("docker", '{"ServerVersion": "1"}', {"memory_mib", "processes", "cpus"}),
        ("podman", PODMAN, set()),
        ("podman", PODMAN.replace('"cpu", ', "").replace("false", "true"), {"cpus"}),
        (
            "podman",
            PODMAN.replace('"v2"', '"v1"').replace("false", "true"),
            {"memory_mib", "processes", "cpus"},
        ),
    ],
)
def test_what_an_engine_cannot_bound_is_told(
    tmp_path: Path, name: str, info: str, unbounded: set[str]
) -> None:
    """It only warns on the terminal, and goes on."""
    record = Client(tmp_path, name, info).engine.record(LIMITS)

    assert {limit for limit, by in record.limits.items() if by is None} == unbounded
    assert record.limits_status == ("partial" if unbounded else "enforced")


def test_a_client_without_an_engine_is_told_in_one_sentence(docker: Client) -> None:
    """That is how Docker answers on a machine that has its client alone."""
    docker.path.write_text(CLIENT.replace("info) ", f'info) echo "{NO_DAEMON}" >&2; '))
    docker.says(info='{"ServerVersion": ""}', status="1")

    error = refused(docker, Policy(read=(Path("/"),)))

    assert str(error) == (
        f"sandbox docker: the engine does not answer ({NO_DAEMON}); start it, or use another "
        "sandbox"
    )


@pytest.mark.skipif(shutil.which("docker") is None, reason="docker is not on PATH")
def test_the_real_client_of_docker_is_understood(tmp_path: Path) -> None:
    """Its words may change from version to version."""
    nowhere = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/docker.sock"}

    with pytest.raises(InfrastructureError, match=r"the engine does not answer \(.*docker\.sock"):
        Engine("docker", environ=nowhere).record(LIMITS)


@pytest.mark.parametrize("answer", ["", "[]", "{}", "nothing", '{"host": 1}', '{"host": {}}'])
def test_an_answer_that_is_none_is_told(docker: Client, answer: str) -> None:
    """A wrapper of the client may print anything."""
    docker.says(info=answer)

    assert "the engine does not answer" in str(refused(docker, Policy(read=(Path("/"),))))


def test_a_missing_client_is_told(tmp_path: Path) -> None:
    """Nobody should have to guess which program is meant."""
    engine = Engine("podman", environ={"PATH": str(tmp_path)})

    with pytest.raises(InfrastructureError) as caught:
        engine.record(LIMITS)

    assert str(caught.value) == (
        "sandbox podman: it is not on PATH; install podman, or use another sandbox"
    )


def test_a_missing_image_is_told_with_how_to_bring_it(docker: Client) -> None:
    """It is never fetched: what would run would then be decided elsewhere."""
    docker.says(image="")

    assert str(refused(docker, Policy(read=(Path("/"),)))) == (
        "sandbox docker: there is no image an-image:1 on this machine, and none is ever fetched; "
        "bring it with `docker pull an-image:1` or `docker load`"
    )


def test_a_rootless_docker_is_refused(docker: Client) -> None:
    """What a candidate leaves behind there belongs to a user that the harness cannot become."""
    docker.says(info=DOCKER.replace("name=seccomp,profile=builtin", "name=rootless"))

    assert "the engine runs rootless" in str(refused(docker, Policy(read=(Path("/"),))))


def test_what_a_container_cannot_express_is_refused(docker: Client, tmp_path: Path) -> None:
    """A mount that is left out, or a path that stays in sight, must not pass in silence."""
    one, two = tmp_path / "one", tmp_path / "two"

    assert "not 2 and 0" in str(refused(docker, Policy(read=(one, two))))
    assert "not 0 and 0" in str(refused(docker, Policy()))
    assert "not 1 and 2" in str(refused(docker, Policy(read=(one,), write=(two, tmp_path / "x"))))
    assert "cannot hide" in str(refused(docker, Policy(read=(one,), deny_read=(one / "inner",))))
    assert "no network" in str(refused(docker, Policy(read=(one,), domains=("example.org",))))


def test_what_lies_around_the_folders_needs_no_hiding(
    docker: Client, folders: tuple[Path, Path]
) -> None:
    """A container shows nothing of it anyway."""
    box, _ = folders
    policy = Policy(read=(box,), deny_read=(box.parent, Path("/home")))

    wrapped = docker.engine.wrap(Command(argv=("x",), cwd=Path("/"), env={}), policy)

    assert not any("/home" in word for word in wrapped.argv)


@pytest.mark.parametrize(
    ("status", "answer", "expected"),
    [
        (0, None, False),
        (-9, None, False),
        (None, None, False),
        (engine_module.OOM_STATUS, None, True),
        (137, "true", True),
        (137, "false", False),
        (1, "", False),
    ],
)
def test_the_engine_is_asked_for_memory_only_where_the_status_leaves_it_open(
    docker: Client,
    folders: tuple[Path, Path],
    status: int | None,
    answer: str | None,
    expected: bool,
) -> None:
    """Each call of the client takes about as long as all that a candidate does."""
    docker.says(killed="true" if answer is None else answer)
    wrapped = wrap(docker, folders)

    assert wrapped.ran_out_of_memory(status) is expected

    assert docker.calls[-1].startswith("container inspect") is (answer is not None)


def test_a_container_that_is_gone_already_is_removed(
    docker: Client, folders: tuple[Path, Path]
) -> None:
    """One that never came to be is no error either."""
    wrapped = wrap(docker, folders)

    wrapped.cleanup()

    name = wrapped.argv[wrapped.argv.index("--name") + 1]
    assert docker.calls[-1] == f"rm --force --volumes {name}"


def test_a_container_that_cannot_be_removed_is_told(
    podman: Client, folders: tuple[Path, Path]
) -> None:
    """It may still run, and what it writes would be taken for the next one's."""
    podman.says(rm="some warning\nError: device or resource busy\n")
    wrapped = wrap(podman, folders)

    with pytest.raises(InfrastructureError) as caught:
        wrapped.cleanup()

    assert "cannot be removed: Error: device or resource busy; remove it" in str(caught.value)
    assert podman.calls[-1].startswith("rm --force --volumes --time 0 evalarc-")

"""`python -m release.sbom WHEEL FILE`: what comes along when the wheel is installed, as CycloneDX.

It tells of an environment that holds the wheel and its locked run-time dependencies and nothing
else, so names, versions and licences are those of the installed files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def empty_environment(folder: Path) -> Path:
    """Make an environment without pip, and return its interpreter."""
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def install(python: Path, *arguments: str) -> None:
    """Let the pip of this environment install into another one, which needs none then."""
    argv = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*argv, "--disable-pip-version-check", *arguments], check=True)


def install_wheel(python: Path, wheel: Path) -> None:
    """Install a wheel alone, as from an index: by its path, it would bring that path along."""
    name, version, *_ = wheel.name.split("-")
    only = ("--no-index", "--no-deps", "--find-links", str(wheel.parent))
    install(python, *only, f"{name}=={version}")


def write_sbom(python: Path, place: Path) -> None:
    """Write what an environment holds; the same environment gives the same bytes.

    Args:
        python: The environment's interpreter.
        place: The JSON document, which is checked against its schema before it is written.
    """
    argv = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    argv += ["--output-format", "JSON", "--output-file", str(place), str(python)]
    subprocess.run(argv, check=True, capture_output=True)


def main(arguments: Sequence[str]) -> int:
    """Install a wheel with its locked dependencies somewhere, and tell what that brought."""
    wheel, place = arguments
    with tempfile.TemporaryDirectory() as folder:
        python = empty_environment(Path(folder))
        locked = ROOT / "requirements" / "run.txt"
        install(python, "--require-hashes", "--only-binary", ":all:", "-r", str(locked))
        install_wheel(python, Path(wheel))
        write_sbom(python, Path(place))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

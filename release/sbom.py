"""`python -m release.sbom WHEEL FILE`: what comes along when the wheel is installed, as CycloneDX.

It tells of an environment that holds the wheel and its locked run-time dependencies and nothing
else, so names, versions and licences are those of the installed files. The agents and their
sandbox are not among them: who asks for them gets them from npm, as locked, so they are told
from there.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "pytest_evalarc" / "tools" / "package-lock.json"
MODULES = "node_modules/"
HASHES = {"sha1": "SHA-1", "sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}
"""npm's names and CycloneDX's."""


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
    """Write what an environment holds and what the tools are; the same of both, the same bytes.

    Args:
        python: The environment's interpreter.
        place: The JSON document, which is checked against its schema before it is written.

    Raises:
        ValueError: What the lock of the tools says gives no valid document.
    """
    argv = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    argv += ["--output-format", "JSON", "--output-file", "-", str(python)]
    done = subprocess.run(argv, check=True, capture_output=True, encoding="utf-8")
    document = json.loads(done.stdout)
    document["components"] += tool_components(json.loads(TOOLS.read_text("utf-8")))
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    version = SchemaVersion.from_version(document["specVersion"])
    if error := JsonStrictValidator(version).validate_str(text):
        raise ValueError(f"{TOOLS.name} gives no valid SBOM: {error}")
    place.write_text(text, "utf-8")


def tool_components(lock: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the packages that a lock of npm pins, as components of CycloneDX.

    Args:
        lock: A `package-lock.json` of version 3.
    """
    for path, package in lock["packages"].items():
        if not path:
            continue
        # The key names the folder; a package that is there under another name says its own.
        name = package.get("name", path.rpartition(MODULES)[2])
        # Its @ belongs to the version alone, and the slash divides the scope from the name.
        purl = f"pkg:npm/{quote(name, safe='/')}@{package['version']}"
        algorithm, _, digest = package["integrity"].partition("-")
        yield {
            "bom-ref": purl,
            "type": "application",
            "name": name,
            "version": package["version"],
            "purl": purl,
            # Nothing of it comes with the wheel.
            "scope": "optional",
            "hashes": [{"alg": HASHES[algorithm], "content": base64.b64decode(digest).hex()}],
            "licenses": [{"license": {"name": package["license"]}}],
            "properties": [
                {"name": "pytest-evalarc:installed-by", "value": "pytest-evalarc tools install"}
            ],
        }


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

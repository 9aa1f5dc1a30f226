"""What the build of a wheel or an sdist adds to pyproject.toml: the requirements of
requirements*.txt, and the file that says from which commit and sources it was built."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from lab import installed  # noqa: E402 - it is found only now

EXTRAS = {name: f"requirements-{name}.txt" for name in ("fast", "figures", "cluster")}
DESCRIBE = ("describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*")


class Requirements(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = _requirements("requirements.txt")
        metadata["optional-dependencies"] = {
            name: _requirements(file) for name, file in EXTRAS.items()
        }


class BuiltFrom(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        row = {"commit": _commit(), "sources_sha256": installed.sources_sha256(ROOT)}
        self._folder = tempfile.TemporaryDirectory(prefix="lab-build-")
        file = Path(self._folder.name, installed.BUILT_FROM)
        file.write_text(json.dumps(row) + "\n", encoding="utf-8")
        build_data["force_include"][str(file)] = installed.BUILT_FROM

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()


def get_metadata_hook() -> type[Requirements]:
    return Requirements


def get_build_hook() -> type[BuiltFrom]:
    return BuiltFrom


def _requirements(file: str) -> list[str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return [wanted for line in lines if (wanted := line.partition("#")[0].strip())]


def _commit() -> str:
    """Return the commit of this clone, or the one from which this sdist was made; "" if neither is
    known."""
    if (sdist := installed.built_from(ROOT)) is not None:
        return sdist["commit"]
    if not (ROOT / ".git").exists():  # git would answer for a repository around it
        return ""
    try:
        argv = ["git", "-C", str(ROOT), *DESCRIBE]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""

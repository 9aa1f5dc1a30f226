"""Read the lock files, and list the packages of the lab as a software bill of materials (SBOM).

A lock file in `locks/` names every package that the lab installs, also indirect ones, with the
version and the SHA-256 hashes of the package's files. pip refuses a file with another hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from lab import __version__
from lab.run.manifest import ROOT

LOCKS = ROOT / "locks"
PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: *; *([^\\]*\S))?", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Package:
    """A package in a lock file.

    `marker` is an environment marker that names the platforms that need the package; "" means all.
    """

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""

    @property
    def installed(self) -> str | None:
        """The installed version; None if the package is not installed for this interpreter."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None


def locked(lock: Path) -> list[Package]:
    text = lock.read_text(encoding="utf-8")
    starts = [*(found.start() for found in PACKAGE.finditer(text)), len(text)]
    return [
        Package(found[1], found[2], tuple(HASH.findall(text, start, end)), found[3] or "")
        for found, start, end in zip(PACKAGE.finditer(text), starts, starts[1:], strict=False)
    ]


def locked_lines(lock: Path, name: str) -> str:
    """Return the lines of a lock file for one package, with its hashes."""
    text = lock.read_text(encoding="utf-8")
    start = next(found.start() for found in PACKAGE.finditer(text) if found[1] == name)
    after = next((found.start() for found in PACKAGE.finditer(text) if found.start() > start), None)
    return text[start:after]


def bill_of_materials(packages: Iterable[Package]) -> dict[str, Any]:
    """Return a bill of materials in the format CycloneDX 1.5 (JSON)."""
    lab = {"type": "application", "bom-ref": "lab", "name": "mptcp-sdn-lab", "version": __version__}
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{each.name}@{each.version}",
            "name": each.name,
            "version": each.version,
            "purl": f"pkg:pypi/{each.name}@{each.version}",
            "properties": [
                *({"name": "locked:sha256", "value": digest} for digest in each.hashes),
                *([{"name": "locked:marker", "value": each.marker}] if each.marker else []),
            ],
        }
        for each in packages
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": lab},
        "components": components,
        "dependencies": [{"ref": "lab", "dependsOn": [each["bom-ref"] for each in components]}],
    }

"""Define the command that checks the installed packages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click

from lab.errors import LabError, MachineLacks
from lab.isolation import python
from lab.results import packages

UNANSWERED = "could not be audited"  # pip-audit says so if the index gives no answer


@click.command()
@click.option(
    "--sbom",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a bill of materials (CycloneDX JSON) into FILE.",
)
@click.option("--offline", is_flag=True, help="Do not ask for known weaknesses.")
def audit(sbom: Path | None, offline: bool) -> None:
    """Check the packages that the lab has installed.

    Compare their versions with the lock files, then ask the package index for known weaknesses.
    """
    locks = sorted(packages.LOCKS.glob("*.txt"))
    for lock in locks:
        _compare(lock)
    if sbom:
        document = packages.bill_of_materials(packages.locked(packages.LOCKS / "run.txt"))
        sbom.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        click.echo(f"{sbom}: {len(document['components'])} packages")
    if not offline:
        for lock in locks:
            _ask(lock)


def _compare(lock: Path) -> None:
    """Raise `LabError` if an installed package has another version than in the lock file, or if the
    lock file has no hash for a package."""
    found = packages.locked(lock)
    wrong = [
        f"{each.name} {each.installed} is installed, {each.version} is locked"
        for each in found
        if each.installed not in (None, each.version)
    ]
    wrong += [f"{each.name} has no hash" for each in found if not each.hashes]
    if wrong:
        raise LabError(f"compare with {lock.name}: {'; '.join(wrong)}. Try: rm -r .venv")
    click.echo(f"{lock.name}: {len(found)} packages, all with hashes; no other version installed")


def _ask(lock: Path) -> None:
    argv = python("-m", "pip_audit", "--requirement", str(lock), "--require-hashes")
    done = subprocess.run(
        [*argv, "--disable-pip", "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named" in done.stderr:
        raise MachineLacks("ask for known weaknesses: pip-audit is missing. Try: ./run_lab.sh lint")
    if UNANSWERED in done.stdout + done.stderr:
        raise MachineLacks(
            f"ask for known weaknesses of {lock.name}: the package index that this machine reaches "
            "does not report them. Try elsewhere, or with --offline"
        )
    click.echo(f"{lock.name}: {(done.stdout + done.stderr).strip()}")
    if done.returncode:
        raise LabError(f"ask for known weaknesses of {lock.name}: see above, or use --offline")

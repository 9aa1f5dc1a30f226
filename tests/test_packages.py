"""Every installed package is locked with hashes and listed in the bill of materials."""

from __future__ import annotations

import io
import json
import re
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner
from cyclonedx.model.bom import Bom
from packaging.version import Version

from dashboard import exports
from lab import __version__
from lab.cli.commands import cli
from lab.results import packages

ROOT = Path(__file__).resolve().parents[1]
OF = {
    "run.txt": ["requirements.txt"],
    "fast.txt": ["requirements-fast.txt"],
    "figures.txt": ["requirements-figures.txt"],
    "dev.txt": [
        "requirements.txt",
        "requirements-fast.txt",
        "requirements-figures.txt",
        "requirements-dev.txt",
    ],
    "emulation.txt": ["requirements-emulation.txt"],
}


def pinned(name: str) -> dict[str, str]:
    lines = (line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {re.sub(r"[._-]+", "-", name).lower(): version for name, version in pairs}


@pytest.mark.parametrize("lock", sorted(OF))
def test_every_requirement_is_locked_in_its_version_with_hashes(lock):
    found = packages.locked(packages.LOCKS / lock)
    assert all(each.hashes for each in found)
    versions = {each.name: each.version for each in found}
    for name in OF[lock]:
        for package, version in pinned(name).items():
            assert Version(versions[package]) == Version(version)


def test_lock_files_agree_and_name_no_place():
    seen: dict[tuple[str, str], str] = {}
    for lock in packages.LOCKS.glob("*.txt"):
        assert "://" not in lock.read_text()
        for each in packages.locked(lock):
            assert seen.setdefault((each.name, each.marker), each.version) == each.version


def test_the_installers_require_hashes():
    shell = (ROOT / "run_lab.sh").read_text()
    assert set(re.findall(r"^ *install \w+ (\S+)$", shell, re.MULTILINE)) == {
        "locks/run.txt",
        "locks/dev.txt",
    }
    installs = [line for line in shell.splitlines() if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line for line in installs)
    setup = (ROOT / "lab" / "engines" / "mininet" / "install" / "setup.py").read_text()
    assert '[*pip, "--require-hashes", "-r", str(lock)]' in setup


def test_the_bill_of_materials_names_each_package_once():
    document = packages.bill_of_materials(packages.locked(packages.LOCKS / "run.txt"))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    references = [each["bom-ref"] for each in document["components"]]
    assert (
        len(set(references)) == len(references) == len(packages.locked(packages.LOCKS / "run.txt"))
    )
    assert document["dependencies"][0]["dependsOn"] == references
    assert any(each["purl"].startswith("pkg:pypi/flask@") for each in document["components"])


def test_another_program_reads_the_same_from_the_bill_of_materials():
    found = packages.locked(packages.LOCKS / "run.txt")
    bom = Bom.from_json(data=packages.bill_of_materials(found))
    assert {(each.purl.name, each.purl.version) for each in bom.components} == {
        (each.name, each.version) for each in found
    }
    assert (bom.metadata.component.name, bom.metadata.component.version) == (
        "mptcp-sdn-lab",
        __version__,
    )
    assert {each.value for part in bom.components for each in part.properties} == {
        value for each in found for value in (*each.hashes, each.marker) if value
    }
    assert {each.ref.value for each in next(iter(bom.dependencies)).dependencies} == {
        each.bom_ref.value for each in bom.components
    }


def test_an_exported_run_holds_the_bill_of_materials(tmp_path):
    (tmp_path / "run").mkdir()
    content = b"".join(exports.as_zip(tmp_path / "run"))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert json.loads(archive.read("sbom.cdx.json"))["components"]


def test_the_audit_reports_another_version(tmp_path, monkeypatch):
    text, runner = (packages.LOCKS / "run.txt").read_text(), CliRunner()
    (tmp_path / "run.txt").write_text(text)
    monkeypatch.setattr(packages, "LOCKS", tmp_path)
    good = runner.invoke(cli, ["audit", "--offline", "--sbom", str(tmp_path / "sbom.json")])
    assert good.exit_code == 0, good.output
    assert json.loads((tmp_path / "sbom.json").read_text())["components"]
    (tmp_path / "run.txt").write_text(
        re.sub(r"^click==\S+", "click==0.0.1", text, flags=re.MULTILINE)
    )
    bad = runner.invoke(cli, ["audit", "--offline"])
    assert bad.exit_code == 4
    assert "0.0.1 is locked" in bad.output


@pytest.mark.parametrize("emulation", ["not set up", "set up"])
def test_the_audit_forgives_what_venv_installs_until_a_lock_needs_it(monkeypatch, emulation):
    """`python3 -m venv` has an old setuptools, and the emulation's lock file a newer one."""
    versions = {
        each.name: each.version for lock in OF for each in packages.locked(packages.LOCKS / lock)
    }
    if emulation == "not set up":
        del versions["virtme-ng"]
    versions["setuptools"] = "66.1.1"

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(packages.metadata, "version", version)
    found = CliRunner().invoke(cli, ["audit", "--offline"])
    assert (found.exit_code == 0) == (emulation == "not set up"), found.output
    versions["numpy"] = "1.0"
    found = CliRunner().invoke(cli, ["audit", "--offline"])
    assert "numpy 1.0 is installed" in str(found.exception) + found.output

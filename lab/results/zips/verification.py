"""Check a zip archive of runs: first its digests, then each simulated run by making it again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lab import extensions, plain_file
from lab.batch import repeat
from lab.errors import LabError, RequestError, show
from lab.extensions import COPIES, TRUST
from lab.results import run_folders
from lab.results.zips import differences
from lab.results.zips.names import key
from lab.results.zips.reading import unpack
from lab.run.reading import changed, changed_text, read_document
from lab.scenario import engine_table

Verdict = Literal["same", "differs", "not repeated"]
MOST_DIFFERENCES = 5  # of one run, that are named
MOST_DIGESTS = 20  # that are named
CODE, AGAIN, OLD = "code", "again", "archive"  # folders below the place of a verification


@dataclass(frozen=True)
class Checked:
    """What was found out about a run, or about a file beside the runs."""

    name: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    versions: str = ""


def verified(path: Path, place: Path) -> Iterator[Checked]:
    """Unpack the archive at `path` into the empty folder `place`, and check it.

    Yield first each file whose digest is wrong, then each run. Raise `RequestError` if the file is
    no archive of runs.
    """
    folder = place / OLD
    folder.mkdir(mode=0o700)
    found = unpack(path, folder)
    for name in found.differing[:MOST_DIGESTS]:
        yield Checked(name, "differs", (_about_digest(name, found.digests, found.promised),))
    if more := found.differing[MOST_DIGESTS:]:
        yield Checked(f"{len(more)} more files", "differs", ("their digests differ",))
    for run in run_folders.below(folder):
        name = run.relative_to(folder).as_posix()
        if any(each.startswith(f"{name}/") for each in found.differing):
            yield Checked(name, "differs", ("its files are not those that were exported",))
        else:
            yield _checked(name, run, place)


def _about_digest(name: str, digests: Mapping[str, str], promised: Mapping[str, str]) -> str:
    if name not in digests:
        return "it is missing"
    return "its digest differs" if name in promised else "it was added later"


def _checked(name: str, run: Path, place: Path) -> Checked:
    try:
        manifest, result = read_document(run, "manifest.json"), read_document(run, "result.json")
        if edited := changed(run, result):
            return Checked(name, "differs", (changed_text(edited),))
        _check_engine(str(manifest.get("engine")))
        _register(manifest, run, place / CODE)
        again = place / AGAIN / name
        again.mkdir(mode=0o700, parents=True)
        repeat.make_again(run, again)
        versions = _versions(manifest, read_document(again, "manifest.json"))
        found = tuple(differences.between(run, again))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Checked(name, "not repeated", (f"a file of it is wrong: {show(str(error))}",))
    except LabError as error:
        return Checked(name, "not repeated", (_without(place, str(error)),))
    more = (f"{len(found) - MOST_DIFFERENCES} more differences",)
    reasons = found[:MOST_DIFFERENCES] + (more if len(found) > MOST_DIFFERENCES else ())
    return Checked(name, "differs" if found else "same", reasons, versions)


def _without(place: Path, text: str) -> str:
    return text.replace(f"{place / OLD}/", "").replace(f"{place}/", "")


def _check_engine(engine: str) -> None:
    if engine_table.entry(engine).real_time:
        raise RequestError(
            f"engine '{engine}' measures in real time, so no second run has the same bytes. Its "
            "digests are right. Make it again with `run`, and `compare` both"
        )


# Code of somebody else


def _register(manifest: Mapping[str, Any], run: Path, place: Path) -> None:
    """Register the code files that a run has used: those that the user gave by `--with`, and the
    copies in the archive whose digests the user trusts.

    Raise `RequestError`, which says what to type, if another one is needed.
    """
    needed = manifest.get("extensions") or []
    known = {each.sha256 for each in extensions.registered()}
    missing = [each for each in needed if each["sha256"] not in known]
    for each in missing:
        if not extensions.is_trusted(str(each["sha256"])):
            raise RequestError(_how_to_trust(missing))
    for each in missing:
        extensions.add(_copied(run, each, place))


def _how_to_trust(missing: list[Mapping[str, Any]]) -> str:
    several = ", ".join(_name(each) for each in missing)
    options = " ".join(f"{TRUST} {_digest(each)}" for each in missing)
    return (
        f"it needs code of somebody: {several}. Unpack the archive and read the code first. Then "
        f"add {options}, or copy it out of `{COPIES}` and give it by --with"
    )


def _digest(row: Mapping[str, Any]) -> str:
    digest = str(row["sha256"])
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise RequestError("its manifest.json has a digest that is none")
    return digest


def _name(row: Mapping[str, Any]) -> str:
    """Return the file name of a code file in the copies of a run."""
    name = Path(str(row["path"])).name
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}\.(py|c)", name):
        raise RequestError("its manifest.json has a name of a code file that is none")
    return name


def _copied(run: Path, row: Mapping[str, Any], place: Path) -> Path:
    """Copy a trusted code file out of the run folder, because nothing is loaded from there."""
    name, digest = _name(row), _digest(row)
    content = plain_file.read(run / COPIES / name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise RequestError(f"its copy of {name} is another file than manifest.json says")
    target = place / digest[:16] / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


# Versions


def _versions(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return which versions differ between two manifests, or ""."""
    one, other = old.get("versions", {}), new.get("versions", {})
    keys = sorted({*one, *other}, key=key)
    return ", ".join(
        f"{each} {_version(one.get(each))}, here {_version(other.get(each))}"
        for each in keys
        if one.get(each) != other.get(each)
    )


def _version(value: Any) -> str:
    return "not known" if value is None else show(str(value)).strip("'")

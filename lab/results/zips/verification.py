"""Check a zip archive of runs: first its digests, then each run by making it again.

A simulation must give the same bytes; `lab.results.zips.emulated` says how emulations are compared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from lab import extensions, plain_file
from lab.batch import repeat
from lab.errors import LabError, RequestError, show
from lab.extensions import COPIES, TRUST
from lab.results import compare, run_folders
from lab.results.compare import Run
from lab.results.zips import differences, emulated
from lab.results.zips.emulated import Machine, Repeated
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
    """What was found out about a run, about `runs` emulated runs that differ only in the seed, or
    about a file beside the runs."""

    name: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    versions: str = ""
    runs: int = 1


def verified(path: Path, place: Path, machine: Machine) -> Iterator[Checked]:
    """Unpack the archive at `path` into the empty folder `place`, and check it.

    Yield first each file whose digest is wrong, then each simulated run, then emulated runs. Raise
    `RequestError` if the file is no archive of runs.
    """
    folder = place / OLD
    folder.mkdir(mode=0o700)
    found = unpack(path, folder)
    for name in found.differing[:MOST_DIGESTS]:
        yield Checked(name, "differs", (_about_digest(name, found.digests, found.promised),))
    if more := found.differing[MOST_DIGESTS:]:
        yield Checked(f"{len(more)} more files", "differs", ("their digests differ",))
    emulations = []
    for run in run_folders.below(folder):
        name = run.relative_to(folder).as_posix()
        if any(each.startswith(f"{name}/") for each in found.differing):
            yield Checked(name, "differs", ("its files are not those that were exported",))
        elif _is_emulated(run):
            emulations.append(run)
        else:
            yield _guarded(name, place, partial(_simulated, name, run, place))
    yield from _emulated(emulations, place, machine)


def _about_digest(name: str, digests: Mapping[str, str], promised: Mapping[str, str]) -> str:
    if name not in digests:
        return "it is missing"
    return "its digest differs" if name in promised else "it was added later"


def _guarded(name: str, place: Path, check: Callable[[], Checked]) -> Checked:
    """Return what `check` finds out, or why the run was not made again."""
    try:
        return check()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Checked(name, "not repeated", (f"a file of it is wrong: {show(str(error))}",))
    except LabError as error:
        return Checked(name, "not repeated", (_without(place, str(error)),))


def _simulated(name: str, run: Path, place: Path) -> Checked:
    manifest, result = read_document(run, "manifest.json"), read_document(run, "result.json")
    if edited := changed(run, result):
        return Checked(name, "differs", (changed_text(edited),))
    _register(manifest, run, place / CODE)
    again = place / AGAIN / name
    again.mkdir(mode=0o700, parents=True)
    repeat.make_again(run, again)
    versions = _versions(manifest, read_document(again, "manifest.json"))
    return _found(name, tuple(differences.between(run, again)), versions)


def _found(name: str, found: tuple[str, ...], versions: str) -> Checked:
    more = (f"{len(found) - MOST_DIFFERENCES} more differences",)
    reasons = found[:MOST_DIFFERENCES] + (more if len(found) > MOST_DIFFERENCES else ())
    return Checked(name, "differs" if found else "same", reasons, versions)


def _without(place: Path, text: str) -> str:
    return text.replace(f"{place / OLD}/", "").replace(f"{place}/", "")


# Emulations


def _is_emulated(run: Path) -> bool:
    try:
        return engine_table.entry(str(read_document(run, "manifest.json").get("engine"))).real_time
    except LabError:
        return False  # `_simulated` says what is wrong


def _emulated(folders: Sequence[Path], place: Path, machine: Machine) -> Iterator[Checked]:
    """Check emulated runs in groups that differ only in the seed."""
    runs: dict[tuple[str, str], Run] = {}
    for folder in folders:
        name = _name_of(folder, place)
        try:
            run = _read(folder)
        except compare.Edited as error:
            yield Checked(name, "differs", (str(error),))
        except LabError as error:
            yield Checked(name, "not repeated", (_without(place, str(error)),))
        else:
            if why := emulated.useless(run, runs):
                yield Checked(name, "not repeated", (why,))
            else:
                runs[emulated.measured(run)] = run
    for group in emulated.groups(runs.values()):
        yield _guarded_group(group, place, machine)


def _read(folder: Path) -> Run:
    run, manifest = compare.read_run(folder), read_document(folder, "manifest.json")
    if run.engine != manifest["engine"]:
        raise RequestError("its manifest.json and result.json name two engines")
    return run


def _guarded_group(group: Sequence[Run], place: Path, machine: Machine) -> Checked:
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    name = f"{_name_of(group[0].folder, place)}{more}"
    found = _guarded(name, place, partial(_group, name, group, place, machine))
    return replace(found, runs=len(group))


def _group(name: str, group: Sequence[Run], place: Path, machine: Machine) -> Checked:
    for run in group:
        _register(read_document(run.folder, "manifest.json"), run.folder, place / CODE)
    new = emulated.make_again([_repeated(run, place) for run in group], machine)
    one, other = (read_document(runs[0].folder, "manifest.json") for runs in (group, new))
    return _found(name, tuple(emulated.differences(group, new)), _versions(one, other))


def _repeated(run: Run, place: Path) -> Repeated:
    again = place / AGAIN / _name_of(run.folder, place)
    return Repeated(run, repeat.scenario_of(run.folder), again)


def _name_of(folder: Path, place: Path) -> str:
    return folder.relative_to(place / OLD).as_posix()


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

"""Put run folders into a zip archive that `verify` takes, without the paths of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import plain_file
from lab.errors import LabError, RequestError
from lab.results import compare, packages, run_folders
from lab.results.zips import crate, names
from lab.results.zips.writing import Member, can_be_read, pieces_of, with_digests, zipped
from lab.run.manifest import ROOT
from lab.run.reading import MEASURED
from lab.run.recorder import RESERVE

LOCKS = ("run.txt", "fast.txt")
EMULATION = "emulation.txt"
SBOM = "sbom.cdx.json"
SCRUBBED = ("manifest.json", "log.txt", "commands.sh", "report.md", "note.json")  # have no seal
README = """\
# Runs of the lab for Multipath TCP

Each folder with a `manifest.json` is a run; docs/formats.md of the lab describes its files.

    sha256sum -c --quiet sha256sums
    ./run_lab.sh verify THIS_FILE.zip

The first line, in the unpacked folder, checks that no file was changed. The second, in the folder
of the lab, checks it too, makes each run again from its scenario, its seed and its changes by hand,
and says what differs; docs/results.md of the lab says how emulations are compared. `versions.json`
says which versions made the runs, and `locks/` has every package with its version and digest.
`CITATION.cff` says how to cite the lab. `ro-crate-metadata.json` describes the runs for programs
(RO-Crate 1.1, Process Run Crate 0.5): name your licence there before you publish.
"""


@dataclass(frozen=True)
class Chosen:
    """Run folders with their names in the archive. `left_out` says which others cannot be used."""

    folders: Sequence[tuple[str, Path]]
    left_out: Sequence[str]


def chosen(where: Iterable[str]) -> Chosen:
    """Find the runs in folders. Those that are unfinished, damaged or edited are left out.

    Raise `RequestError` if none is left, or if two have one name.
    """
    found: dict[str, Path] = {}
    left_out = []
    for folder, name in _named(where):
        try:
            compare.read_run(folder)
            _check_paths(folder)
        except RequestError as error:
            left_out.append(compare.left_out(folder, error))
            continue
        if (other := found.setdefault(name, folder)) is not folder:
            raise RequestError(f"export: {other} and {folder} have one name: rename a folder")
    if not found:
        raise RequestError("\n".join(left_out))
    made = Chosen(sorted(found.items()), left_out)
    if twin := names.twins(f"{each}/manifest.json" for each in (*found, *_texts(made.folders))):
        raise RequestError(f"export: two folders are called {Path(twin).parent}: rename one")
    return made


def archive(folders: Sequence[tuple[str, Path]]) -> Iterator[bytes]:
    """Yield the zip archive of run folders with their names. Its bytes depend on them alone."""
    return zipped(with_digests(_members(folders)))


def _named(where: Iterable[str]) -> Iterator[tuple[Path, str]]:
    for text in where:
        given = Path(text).resolve()
        if not given.is_dir():
            raise RequestError(f"export {text}: there is no such folder: give one with runs")
        for folder in run_folders.below(given):
            name = folder.relative_to(given.parent).as_posix()
            if problem := names.wrong(name):
                raise RequestError(f"export {folder}: {problem}: rename the folder")
            yield folder, name


def _check_paths(folder: Path) -> None:
    """Raise `RequestError` if a file that must stay as it is names a path of this machine."""
    private = [place for place in _private(folder) if len(place) > 1]
    for name in MEASURED:
        with suppress(OSError):
            for line in plain_file.lines(folder / name):
                if place := next((each for each in private if each in line), None):
                    raise RequestError(
                        f"its {name} names {place.decode(errors='replace')}, a path of this "
                        "machine, and it must stay as it was measured"
                    )


def _private(folder: Path) -> dict[bytes, bytes]:
    """Map the paths of this machine, and those that the manifest of a run names, to what the
    archive has for them. Longer ones are first."""
    places = {str(Path(sys.prefix)): "PYTHON", str(ROOT): "LAB", str(Path.home()): "~"}
    places[str(folder)] = places[str(folder.resolve())] = "."
    manifest = crate.manifest_of(folder)
    for key, copies in (("extensions", "extensions"), ("inputs", "inputs")):
        for each in _rows(manifest.get(key)):
            if path := str(each.get("path", "")):
                name = each.get("name") if key == "inputs" else Path(path).name
                places[path] = f"{copies}/{name}"
                places.setdefault(str(Path(path).parent), "FOLDER")
    order = sorted((each for each in places if len(each) > 1), key=len, reverse=True)
    return {each.encode(errors="replace"): places[each].encode(errors="replace") for each in order}


def _rows(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _members(folders: Sequence[tuple[str, Path]]) -> Iterator[Member]:
    texts = _texts(folders)
    for name in sorted((*texts, crate.METADATA)):
        pieces = crate.metadata(folders, texts) if name == crate.METADATA else [texts[name]]
        yield Member(name, pieces)
    for name, folder in folders:
        yield from files(name, folder)


def _texts(folders: Sequence[tuple[str, Path]]) -> dict[str, bytes]:
    """Return the files beside the runs, by their names."""
    manifests = (crate.manifest_of(folder) for _, folder in folders)
    made = {(str(each.get("engine")), _line(each.get("versions", {}))) for each in manifests}
    emulated = any(engine != "sim" for engine, _ in made)
    locks = (*LOCKS, *([EMULATION] if emulated else []))
    versions = [json.loads(each) for each in sorted({each for _, each in made})]
    materials = packages.bill_of_materials(packages.locked(packages.LOCKS / LOCKS[0]))
    return {
        "README.md": README.encode(),
        "CITATION.cff": plain_file.read(ROOT / "CITATION.cff"),
        "versions.json": (json.dumps(versions, indent=1) + "\n").encode(),
        SBOM: (json.dumps(materials, indent=1) + "\n").encode(),
        **{f"locks/{each}": plain_file.read(packages.LOCKS / each) for each in locks},
    }


def _line(versions: Mapping[str, Any]) -> str:
    return json.dumps(versions, sort_keys=True)


def files(name: str, folder: Path) -> Iterator[Member]:
    """Yield the plain files of a run folder that can be read. Links are left out, and files whose
    name an archive cannot have."""
    paths = sorted(each for each in folder.rglob("*") if each.name != RESERVE)
    inside = {each.relative_to(folder).as_posix(): each for each in paths}
    private = _private(folder)
    seen: set[str] = set()
    for inner, path in inside.items():
        whole, own = f"{name}/{inner}", names.key(inner)
        is_plain = not path.is_symlink() and path.is_file() and can_be_read(path)
        if not is_plain or own in seen or names.wrong(whole):
            continue
        seen.add(own)
        yield Member(whole, _scrubbed(path, private) if inner in SCRUBBED else pieces_of(path))


def _scrubbed(path: Path, private: Mapping[bytes, bytes]) -> Iterator[bytes]:
    with suppress(OSError):
        for line in plain_file.lines(path):
            for place, instead in private.items():
                line = line.replace(place, instead)
            yield line


def write(path: Path, folders: Sequence[tuple[str, Path]]) -> None:
    """Write the archive. The file gets its name when it is complete, and only if it is new."""
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as file:
            try:
                for piece in archive(folders):
                    file.write(piece)
                file.close()
                path.hardlink_to(part)  # unlike a rename, it replaces nothing
            finally:
                part.unlink()
    except FileExistsError as error:
        raise RequestError(
            f"export: {error.filename2 or error.filename} is there already: choose another name, "
            "or remove it"
        ) from error
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}: choose another folder") from error

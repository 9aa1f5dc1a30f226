"""Describe the runs of an archive as an RO-Crate 1.1, by the profile Process Run Crate 0.5.

Each run is an action: the instrument is this lab, the object the scenario, the results the files
that were measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lab.errors import RequestError
from lab.run.manifest import made_by
from lab.run.reading import MEASURED, read_document

METADATA = "ro-crate-metadata.json"
CONTEXT, CRATE = "https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
NO_LICENCE = "#licence"
FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".yaml": "application/yaml",
    ".md": "text/markdown",
}
STATUS = {"complete": "CompletedActionStatus", "interrupted": "CompletedActionStatus"}
Entity = Mapping[str, Any]
Folders = Sequence[tuple[str, Path]]  # name in the archive, and run folder


def metadata(folders: Folders, texts: Iterable[str]) -> Iterator[bytes]:
    """Yield the metadata file. `texts` are the other files beside the runs."""
    for n, each in enumerate(_entities(folders, tuple(texts))):
        line = json.dumps(each, ensure_ascii=False)
        head = f'{{"@context": "{CONTEXT}", "@graph": [\n' if n == 0 else ",\n"
        yield f"{head}{line}".encode(errors="replace")
    yield b"\n]}\n"


def manifest_of(folder: Path) -> Mapping[str, Any]:
    """Return the manifest of a run; {} if it cannot be read."""
    try:
        return read_document(folder, "manifest.json")
    except RequestError:
        return {}


def _entities(folders: Folders, texts: Sequence[str]) -> Iterator[Entity]:
    about, follows = {"@id": "./"}, {"@id": CRATE}
    yield {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": about,
        "conformsTo": follows,
    }
    makers: dict[str, None] = {}
    newest = "1980-01-01"
    for _, folder in folders:
        manifest = manifest_of(folder)
        makers[_maker(manifest)] = None
        newest = max(newest, str(manifest.get("started", ""))[:10])
    yield _root(folders, texts, newest)
    yield {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    yield {
        "@id": NO_LICENCE,
        "@type": "CreativeWork",
        "name": "No licence was chosen",
        "description": "Ask the authors before you use these data. Authors: name a licence here.",
    }
    for each in makers:
        yield {
            "@id": _maker_id(each),
            "@type": "SoftwareApplication",
            "name": "mptcp-sdn-lab",
            "softwareVersion": each,
        }
    for name in texts:
        yield _file(name)
    for name, folder in folders:
        yield from _run(name, folder)


def _root(folders: Folders, texts: Sequence[str], newest: str) -> Entity:
    parts = [*texts, *(f"{name}/" for name, _ in folders)]
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": "Runs of an experiment with Multipath TCP",
        "description": f"{len(folders)} runs with their scenarios, samples, events and results",
        "datePublished": newest,
        "license": {"@id": NO_LICENCE},
        "conformsTo": {"@id": PROFILE},
        "hasPart": [{"@id": quote(each)} for each in parts],
        "mentions": [{"@id": _action_id(name)} for name, _ in folders],
    }


def _run(name: str, folder: Path) -> Iterator[Entity]:
    manifest = manifest_of(folder)
    files = [f"{name}/{each}" for each in MEASURED if (folder / each).is_file()]
    scenario = f"{name}/scenario.yaml"
    title = f"run {name}: scenario {manifest.get('scenario')}, strategy {manifest.get('strategy')}"
    yield {
        "@id": quote(f"{name}/"),
        "@type": "Dataset",
        "name": f"run folder {name}",
        "description": title,
        "hasPart": [{"@id": quote(each)} for each in files],
    }
    yield from map(_file, files)
    status = STATUS.get(str(_result(folder).get("status")), "FailedActionStatus")
    yield {
        "@id": _action_id(name),
        "@type": "CreateAction",
        "name": title,
        "description": f"engine {manifest.get('engine')}, seed {manifest.get('seed')}",
        "instrument": {"@id": _maker_id(_maker(manifest))},
        **({"object": {"@id": quote(scenario)}} if scenario in files else {}),
        "result": [{"@id": quote(each)} for each in files if each != scenario],
        "actionStatus": f"http://schema.org/{status}",
        **({"startTime": manifest["started"]} if manifest.get("started") else {}),
    }


def _file(name: str) -> Entity:
    form = FORMATS.get(Path(name).suffix, "text/plain")
    return {"@id": quote(name), "@type": "File", "name": name, "encodingFormat": form}


def _result(folder: Path) -> Mapping[str, Any]:
    try:
        return read_document(folder, "result.json")
    except RequestError:
        return {}


def _maker(manifest: Mapping[str, Any]) -> str:
    return made_by(manifest.get("versions", {}))


def _maker_id(version: str) -> str:
    return f"#lab-{quote(version, safe='')}"


def _action_id(name: str) -> str:
    return f"#run-{quote(name, safe='')}"

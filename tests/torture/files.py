"""Files from somebody else: worksheets, rosters and zip archives. Each is read or refused, in a
bounded time, runs no code, and puts no HTML of its own into a page."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from classroom.class_fakes import SHEET, Clock, command, template
from users_files import TOPOLOGY

from dashboard import exports, handout
from dashboard.classroom.app import create_app
from lab.classroom import folder, roster
from lab.classroom.room import Room
from lab.errors import LabError
from lab.results import compare
from lab.results.zips import names, packing, reading
from lab.run.reading import read_document
from lab.scenario import loading as scenarios
from lab.worksheets import loading
from torture import inputs
from torture.campaign import Campaign, Counts, Failed
from torture.http import judge
from torture.parsers import refused_or_read

SLOW_S = 10.0
INJECTED = (
    *("<script>alert(7)</script>", "<img src=x onerror=alert(7)>", '"><b onclick=alert(7)>'),
    *("[a](javascript:alert(7))", "![a](http://192.0.2.9/x)", "<http://192.0.2.9/x>"),
    *("[" * 3000, "> " * 2000, "*_" * 3000, "`" * 5001, "| a " * 2000, "\u202e", "{{ 7 * 7 }}"),
    *("<!--", "]]>", "&#60;script>alert(7)&#60;/script>", "\n".join("-" * n for n in range(90))),
)
FORBIDDEN = ("<script>alert", "<img src=x", "<b onclick", 'href="javascript:', 'src="http')
PROSE = ("text", "title", "ask", "hint", "why")
TRAP = "from pathlib import Path\nPath({marker!r}).touch()\n" + TOPOLOGY


class Worksheets(Campaign):
    name = "worksheets"
    what = "worksheets and rosters from somebody else, and the pages of a class with them"
    hangs_after_s = 60.0

    def prepare(self) -> None:
        shipped = [path.read_bytes() for path in sorted(loading.FOLDER.glob("*.yaml"))]
        self.texts = [*[SHEET.encode()] * 4 * len(shipped), *shipped]  # a short one is quick
        self.sheets = [yaml.safe_load(each) for each in self.texts]
        self.marker = self.folder / "code_ran"
        self.trap = self.folder / "doorway.py"
        self.trap.write_text(TRAP.format(marker=str(self.marker)))

    def trial(self, rng: random.Random) -> Counts:
        path, list_path = self.folder / "theirs.yaml", self.folder / "roster.csv"
        for _ in range(5):
            path.write_bytes(inputs.changed(rng, rng.choice(self.texts), self.texts))
            self.read(path, rng)
            self.in_words(rng, path)
            self.read(path, rng)
            list_path.write_bytes(inputs.changed(rng, b"name,pin,E-Mail\nAda,1234,a@b\nBo,,\n"))
            refused_or_read(lambda: roster.from_csv(list_path))
        if self.marker.exists():
            self.marker.unlink()
            raise Failed("a worksheet has run code")
        return Counts(15)

    def in_words(self, rng: random.Random, path: Path) -> None:
        """Write a worksheet with one to three of its texts replaced."""
        sheet = yaml.safe_load(yaml.safe_dump(rng.choice(self.sheets)))
        prose = [each for each in places_of(sheet) if each[1] in PROSE]
        for holder, key in rng.sample(prose, min(len(prose), rng.randrange(1, 6))):
            holder[key] = "\n\n".join(rng.sample(INJECTED, 3))
        if rng.random() < 0.3:
            holder, key = rng.choice(list(places_of(sheet)))
            holder[key] = rng.choice((*INJECTED, 10**30, [], None))
        if rng.random() < 0.4:
            run = rng.choice([each["run"] for each in sheet["steps"] if "run" in each])
            name = str(self.trap)
            code: dict[str, Any] = rng.choice(
                (
                    *({"topology.file": name}, {"topology": {"file": name}}),
                    *({"topology.file": {"variant": [name, "b.py"]}}, {"strategy.file": name}),
                    *({"topology": {"mininet": name}}, {"topology.mininet": name}),
                )
            )
            run["settings"] = code
        path.write_text(yaml.safe_dump(sheet))

    def read(self, path: Path, rng: random.Random) -> None:
        began = time.monotonic()
        try:
            sheet = loading.load(str(path))
            pages = [handout.page(sheet)]
            if rng.random() < 0.3:
                pages += self.pages_of_a_class(path)
        except LabError as error:
            if len(str(error)) > 20_000:
                raise Failed(f"an error of {len(str(error))} characters") from error
            pages = []
        if time.monotonic() - began > SLOW_S:
            raise Failed(f"a worksheet took {time.monotonic() - began:.1f} s")
        for page in pages:
            if found := [each for each in FORBIDDEN if each in page]:
                raise Failed(f"a page holds {found} of a worksheet")

    def pages_of_a_class(self, path: Path) -> list[str]:
        classes = self.folder / "classes"
        shutil.rmtree(classes, ignore_errors=True)
        room = Room(folder.make("theirs", [str(path)], classes=classes), Clock())
        app = create_app(room, {"COMMAND": command()})
        try:
            client, settings, base = app.test_client(), room.folder.settings, "/api/class"
            body = {"code": settings.code, "people": [{"name": "Ada", "pin": ""}]}
            client.post(f"{base}/join", json=body)
            client.post(f"{base}/worksheets/theirs/open", json={})
            client.get(f"/instructor?key={settings.instructor_key}")
            found = []
            for address in ("/seat", "/seat/theirs", "/instructor", "/instructor/print/theirs"):
                began, answer = time.monotonic(), client.get(address)
                judge(answer.status_code, began, f"GET {address}")
                found.append(answer.text)
            return found
        finally:
            app.extensions["conductor"].stop()
            room.close()


class Archives(Campaign):
    name = "archives"
    what = "zip archives in the place of other files, and run folders that are exported as zip"
    hangs_after_s = 60.0

    def prepare(self) -> None:
        self.run = template(self.folder / "run")
        self.secret = self.folder / "secret"
        self.secret.write_text("not of this run")

    def trial(self, rng: random.Random) -> Counts:
        for _ in range(5):
            self.given(rng)
        self.exported(rng)
        return Counts(6)

    def given(self, rng: random.Random) -> None:
        """Give an archive, perhaps damaged, to everything that reads a file by its path."""
        content = inputs.changed(rng, archive(rng)) if rng.random() < 0.5 else archive(rng)
        target = self.folder / "archive"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        path = target / rng.choice(("a.zip", "a.yaml", "a.csv", "result.json"))
        path.write_bytes(content)
        readers: tuple[Callable[[], Any], ...] = (
            lambda: scenarios.load(str(path)),
            lambda: loading.load(str(path)),
            lambda: roster.from_csv(path),
            lambda: compare.read_run(path),
            lambda: compare.read_run(target),
            lambda: read_document(target, "result.json"),
        )
        for read in readers:
            began = time.monotonic()
            refused_or_read(read)
            if time.monotonic() - began > SLOW_S:
                raise Failed(f"{path.name} took {time.monotonic() - began:.1f} s")
        if left := [each.name for each in target.iterdir() if each != path]:
            raise Failed(f"{left} were unpacked")

    def exported(self, rng: random.Random) -> None:
        """Put odd files into a run folder; its archive holds nothing from outside."""
        target = self.folder / "odd" / "one"
        shutil.rmtree(target.parent, ignore_errors=True)
        shutil.copytree(self.run, target)
        for name in rng.sample(NAMES, 4):
            path = target / name
            path.parent.mkdir(exist_ok=True, parents=True)
            match rng.randrange(5):
                case 0:
                    path.symlink_to(self.secret)
                case 1:
                    path.symlink_to("/dev/zero")
                case 2:
                    path.symlink_to(target.parent)
                case 3:
                    os.mkfifo(path)
                case _:
                    path.write_bytes(rng.randbytes(rng.randrange(3000)))
        content = b"".join(exports.as_zip(target))
        with zipfile.ZipFile(io.BytesIO(content)) as made:
            for each in made.infolist():
                parts = Path(each.filename).parts
                beside = parts[0] in BESIDE and "one" not in parts
                if not (parts[0] == "one" or beside) or names.wrong(each.filename):
                    raise Failed(f"the archive has the name {each.filename!r}")
                if b"not of this run" in made.read(each):
                    raise Failed(f"{each.filename!r} comes from outside of the run folder")


class Unpacked(Campaign):
    name = "unpacked"
    what = "archives of runs from somebody else, damaged or made to do harm, for `verify`"
    hangs_after_s = 60.0

    def prepare(self) -> None:
        run = template(self.folder / "run")
        self.good = b"".join(packing.archive([("run", run)]))
        self.beside = {*self.folder.iterdir(), self.folder / "given.zip", self.folder / "place"}

    def trial(self, rng: random.Random) -> Counts:
        for _ in range(5):
            self.unpacked(rng)
        return Counts(5)

    def unpacked(self, rng: random.Random) -> None:
        path, place = self.folder / "given.zip", self.folder / "place"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        path.write_bytes(self.content(rng))
        began = time.monotonic()
        refused_or_read(lambda: reading.unpack(path, place))
        if time.monotonic() - began > SLOW_S:
            raise Failed(f"an archive took {time.monotonic() - began:.1f} s")
        if left := set(self.folder.iterdir()) - self.beside:
            raise Failed(f"{left} were unpacked outside of the folder")
        for each in place.rglob("*"):
            if each.is_symlink() or not (each.is_dir() or each.is_file()):
                raise Failed(f"{each} is no plain file")
        size = sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
        if size > reading.MOST_RATIO * path.stat().st_size + 20 * reading.SMALL:
            raise Failed(f"{path.stat().st_size} bytes grew to {size}")

    def content(self, rng: random.Random) -> bytes:
        """Return an archive: damaged bytes, harmful members behind good ones, or a lying list."""
        match rng.randrange(3):
            case 0:
                return inputs.changed(rng, self.good, [archive(rng)])
            case 1:
                return self.with_more(rng)
            case _:
                content = bytearray(self.good)
                marks = [
                    each.start()
                    for each in re.finditer(rb"PK(?:\x01\x02|\x03\x04|\x05\x06)", self.good)
                ]
                for _ in range(rng.randrange(1, 4)):
                    at = rng.choice(marks) + rng.randrange(4, 46)
                    size = rng.choice((1, 2, 4))
                    content[at : at + size] = rng.choice((b"\0", b"\xff", rng.randbytes(1))) * size
                return bytes(content)

    def with_more(self, rng: random.Random) -> bytes:
        made = io.BytesIO(self.good)
        with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as file:
            for name in rng.sample(HARMFUL, rng.randrange(1, 4)):
                entry = zipfile.ZipInfo("x")
                entry.filename, entry.compress_type = name, zipfile.ZIP_DEFLATED
                entry.external_attr = rng.choice((0, 0o100644, 0o120777, 0o40755, 0o20666)) << 16
                file.writestr(entry, rng.choice((b"/etc/passwd", bytes(3 << 20), b"")))
        return made.getvalue()


BESIDE = {  # top folders and files of an archive that are no runs
    *("README.md", "CITATION.cff", "versions.json", "sbom.cdx.json", "ro-crate-metadata.json"),
    *("locks", "sha256sums"),
}
HARMFUL = (
    *("../up", "/tmp/up", "run/../../up", "run\\up", "RUN/manifest.json", "run/Result.json", "run"),
    *(
        "run/manifest.json/x",
        "run/x",
        "C:up",
        "run/\u202e",
        "run/e\u0301",
        "run/\u00e9",
        "a/" * 300,
    ),
)
NAMES = (
    *("a\nb", "a\\..\\b", "\u00e4", "con", "-rf", "inbox/x.json", "extensions/x.py", "x" * 200),
    *("extensions/click.py", "deep/" * 40 + "x", " ", "\udcff", "result.json.new", ".hidden"),
)


def archive(rng: random.Random) -> bytes:
    """A zip archive with names that lead outside, links, or contents that grow when unpacked."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        names = ("../../up", "/tmp/up", "a/../../b", "result.json", "C:\\x", "f")
        for name in rng.sample(names, rng.randrange(1, 5)):
            entry = zipfile.ZipInfo(name)
            if rng.random() < 0.3:
                entry.external_attr = 0o120777 << 16  # a link
            size = rng.choice((10, 1000, 5_000_000))
            file.writestr(entry, b"\0" * size, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (list or dictionary, index or key) of each text in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in list(pairs):
        if isinstance(each, str):
            yield value, key
        elif isinstance(each, dict | list):
            yield from places_of(each)


ALL = (Worksheets, Archives, Unpacked)

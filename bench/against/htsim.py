"""Check a clone of htsim, and compile it together with `replay.cpp`.

Nothing is written into the clone. The program is in the user's cache folder, under a digest of
everything that it depends on.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lab import sudo
from lab.engines.sim import code_cache
from lab.errors import LabError, MachineLacks, RequestError

UPSTREAM = "https://github.com/Broadcom/csg-htsim"
COMMIT = "841d9e7be46bb968eece766aa4b6c044c7799f67"
# of `SOURCES` and all headers beside them, at `COMMIT`
SOURCES_SHA256 = "e4c0c3206e590ad6a2de7a9b675935198ff386b53b8f9a9a8150fc5abc6518e1"
SOURCES = tuple(  # what a simulation of TCP is linked with
    f"{name}.cpp"
    for name in (
        *("config", "eth_pause_packet", "eventlist", "fairpullqueue", "logfile", "loggers"),
        *("mtcp", "ndppacket", "network", "pipe", "queue", "route", "tcp", "tcppacket", "trigger"),
    )
)
FLAGS = ("-std=c++11", "-O3", "-fPIE")  # those of htsim's own Makefile that change the code
REPLAY = Path(__file__).with_name("replay.cpp")


def sources(clone: Path) -> Path:
    """Return the folder with htsim's sources in the clone.

    Raise `RequestError` if `clone` is no clone of htsim, or has other sources than those of
    `COMMIT`.
    """
    found, doing = clone / "sim", f"bench --against {clone}"
    anew = f"git clone {UPSTREAM} NEW_DIR && git -C NEW_DIR checkout {COMMIT[:8]}"
    if not clone.is_dir():
        raise RequestError(f"{doing}: there is no such folder. Try: {anew}")
    if (clone / "HEAD").is_file() and (clone / "objects").is_dir():
        raise RequestError(
            f"{doing}: this is a git folder without files. Try: git clone {clone} NEW_DIR, "
            "and give NEW_DIR"
        )
    if (clone / "mtcp.cpp").is_file():
        raise RequestError(f"{doing}: give the folder above, which has the folder {clone.name}")
    missing = [each for each in SOURCES if not (found / each).is_file()]
    if missing:
        raise RequestError(f"{doing}: no clone of htsim, sim/{missing[0]} is missing. Try: {anew}")
    if digest(found) != SOURCES_SHA256:
        raise RequestError(
            f"{doing}: sim/ is not that of commit {COMMIT[:8]}, so figures would not compare. "
            f"Try: git -C {clone} checkout {COMMIT[:8]} -- sim"
        )
    return found


def digest(folder: Path) -> str:
    """Return the SHA-256 of `SOURCES` and all headers in `folder`, in hex."""
    return _digest([*(folder / each for each in SOURCES), *folder.glob("*.h")]).hexdigest()


def _digest(files: Iterable[Path]) -> hashlib._Hash:
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found


def program(clone: Path) -> Path:
    """Return the program that simulates in htsim. Compile it if it is not in the cache.

    Raise `RequestError` for a wrong `clone`, `MachineLacks` without a compiler, and `LabError` if
    the compiler fails.
    """
    folder, compiler = sources(clone), shutil.which("g++")
    if compiler is None:
        raise MachineLacks("compile htsim: g++ was not found. Try: sudo apt install g++")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    key = _digest([REPLAY])
    key.update(f"{digest(folder)} {FLAGS} {version} {platform.machine()}".encode())
    where = sudo.user_cache() / "htsim" / key.hexdigest()[:16]
    code_cache.check_owner(where)
    if not (where / "replay").exists():
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        _compile(compiler, folder, where / "replay")
    return where / "replay"


def _compile(compiler: str, folder: Path, to: Path) -> None:
    with tempfile.TemporaryDirectory(dir=to.parent) as made:
        new = Path(made, to.name)
        files = [*(str(folder / each) for each in SOURCES), str(REPLAY)]
        argv = [compiler, *FLAGS, "-w", f"-I{folder}", *files, "-o", str(new)]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"compile htsim from {folder}: g++ failed:\n{done.stderr[-2000:]}")
        new.replace(to)

"""Commands are typed in folders full of Python files with the names of modules: none may run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from torture.campaign import Campaign, Counts, Failed
from torture.kills import ROOT

TRAP = "import os; open({witness!r}, 'a').write(__file__ + chr(10))\n"
PACKAGES = ("lab", "controller", "dashboard", "vm", "pox", "pox_ext", "mininet", "mn_wifi", "ryu")
HOOKS = ("sitecustomize", "usercustomize")
COMMANDS = (
    *(["list", "scenarios"], ["list", "strategies"], ["list", "worksheets"], ["--help"]),
    *(["check", "two_paths"], ["check", "nothing"], ["worksheet", "check", "coupled"]),
    *(["grade", "nothing"], ["class", "--help"], ["compare", "."], ["list", "targets", "."]),
    ["run", "two_paths", "--duration", "1", "--quiet", "--out", "run"],
)
ENDS_WITHIN_S = 60.0


class Traps(Campaign):
    name = "traps"
    what = "commands in folders with traps: modules, packages, .pth files, and variables for Python"
    hangs_after_s = 90.0
    door = (str(ROOT / "run_lab.sh"),)

    def prepare(self) -> None:
        place = Path(sys.prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        installed = {each.stem for each in (place / "site-packages").iterdir()}
        self.names = sorted(
            each for each in {*sys.stdlib_module_names, *installed} if each.isidentifier()
        )

    def trial(self, rng: random.Random) -> Counts:
        folder, witness = self.folder / "traps", self.folder / "sprung"
        shutil.rmtree(folder, ignore_errors=True)
        names = self.lay(rng, folder, TRAP.format(witness=str(witness)))
        words = rng.choice(COMMANDS)
        errors = self.call([*self.door, *words], folder, self.variables(rng, folder))
        if witness.exists():
            sprung = witness.read_text().splitlines()[0]
            witness.unlink()
            raise Failed(f"{' '.join(words)} has run {Path(sprung).relative_to(folder)}")
        if "Traceback" in errors:
            raise Failed(f"{' '.join(words)}: {errors[-300:]}")
        return Counts(names)

    def lay(self, rng: random.Random, folder: Path, trap: str) -> int:
        """Make the traps; return how many there are."""
        places = [folder, folder / ".local" / "lib" / "python3.11" / "site-packages"]
        for place in places:
            place.mkdir(parents=True)
            for name in ("lab", "controller", "trap"):
                (place / f"{name}.pth").write_text(trap)
        names = [*HOOKS, *PACKAGES, *rng.sample(self.names, min(60, len(self.names)))]
        for name in names:
            place = rng.choice(places)
            if rng.random() < 0.5:
                (place / f"{name}.py").write_text(trap)
            else:
                (place / name).mkdir()
                for file in ("__init__.py", "__main__.py"):
                    (place / name / file).write_text(trap)
        return len(names) + 6

    def variables(self, rng: random.Random, folder: Path) -> dict[str, str]:
        """Some of the variables that Python reads, with the folder in them."""
        found = {
            "PYTHONPATH": rng.choice((str(folder), ".", f"{folder}/:", f".:{ROOT}")),
            "PYTHONSTARTUP": str(folder / "usercustomize.py"),
            "PYTHONHOME": str(folder),
            "HOME": str(folder),
        }
        return {key: found[key] for key in found if rng.random() < 0.6}

    def call(self, argv: list[str], folder: Path, variables: dict[str, str]) -> str:
        """Run a command, and everything it starts, to its end; return its errors."""
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=os.environ | {"NUMBA_DISABLE_JIT": "1", "MULTIPATH_LAB_FAST": "no"} | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            return process.communicate(timeout=ENDS_WITHIN_S)[1]
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(argv)}: no end within {ENDS_WITHIN_S:g} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


ALL = (Traps,)

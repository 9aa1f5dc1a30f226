"""Type the native commands of the README as a student would: `sudo ./run_lab.sh ...`.

`python native_sudo.py` runs as root on a machine that runs the emulation natively, and that may be
changed: it makes a user `student` who may use sudo, with a copy of this project and a cache folder.
sudo removes the lab's variables from the environment, so nothing tells the lab that it is inside a
VM, where the cache is, or how slow the machine is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from emulation.native_clean import PROJECT, fail, passed, state, untouched

USER, NUMBER, HOME = "student", 12345, Path("/home/student")
LAB = HOME / "lab"
CACHE = HOME / ".cache" / "multipath-lab"
SOURCES = ("lab", "controller", "dashboard", "templates", "scenarios", "locks")
FILES = ("run_lab.sh", "pyproject.toml")
RUN = "run two_paths --engine mininet --duration 6 --set rate_scale=0.1 --quiet --out data/first"
OTHERS = ("hosts.log", "log.txt", "result.json", "pox/log.txt")


def typed(command: str, within_s: float = 900) -> subprocess.CompletedProcess[str]:
    """Run a command as the student, in the project's folder, in a login shell."""
    argv = ["su", "-", USER, "-c", f"cd {LAB} && {command}"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=within_s, check=False)


def settle_in() -> None:
    """Make the student, the copy of the project, and the cache that `setup-emulation` would make.

    The sources in the cache are those of this machine. Compiled eBPF is not copied: the first run
    compiles it, as root.
    """
    with Path("/etc/group").open("a") as groups, Path("/etc/passwd").open("a") as users:
        groups.write(f"{USER}:x:{NUMBER}:\n")
        users.write(f"{USER}:*:{NUMBER}:{NUMBER}::{HOME}:/bin/bash\n")
    rule = Path("/etc/sudoers.d/student")
    rule.write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    rule.chmod(0o440)
    LAB.mkdir(parents=True)
    for name in SOURCES:
        shutil.copytree(PROJECT / name, LAB / name)
    for name in FILES:
        shutil.copy(PROJECT / name, LAB / name)
    (LAB / ".venv").symlink_to((PROJECT / ".venv").resolve())
    CACHE.mkdir(parents=True)
    subprocess.run(["chown", "-hR", f"{USER}:", str(HOME)], check=True)
    (CACHE / "upstreams").symlink_to(Path(os.environ["MULTIPATH_LAB_CACHE"]) / "upstreams")


def of_root() -> list[str]:
    """Files of root in the student's home, except the link to this machine's sources."""
    return [
        str(path)
        for path in HOME.rglob("*")
        if path.lstat().st_uid == 0 and path != CACHE / "upstreams"
    ]


def with_sudo() -> None:
    done = typed(f"sudo ./run_lab.sh {RUN}")
    folder = LAB / "data" / "first"
    passed("sudo ./run_lab.sh run ends with 0", done.returncode == 0, done.stdout + done.stderr)
    result = json.loads((folder / "result.json").read_text())
    passed("its result is complete", result["status"] == "complete", str(result.get("error")))
    passed("it is Multipath TCP", result["mptcp"]["verified"] is True, str(result["mptcp"]))
    manifest = json.loads((folder / "manifest.json").read_text())
    passed("it ran outside the VM's way", not (folder / "vm").exists(), str(manifest))
    missing = [name for name in OTHERS if not (folder / name).exists()]
    passed("its folder is complete", not missing, ", ".join(missing))
    passed("the run compiled the eBPF programs", any((CACHE / "bpf").glob("*.o")))
    passed("no file in the student's home belongs to root", not of_root(), str(of_root()[:9]))


def doctor_and_clean() -> None:
    found = typed("sudo ./run_lab.sh doctor")
    passed(
        "sudo ./run_lab.sh doctor says native",
        "emulation natively: yes" in found.stdout and found.returncode == 0,
        found.stdout + found.stderr,
    )
    cleaned = typed("sudo ./run_lab.sh clean")
    passed(
        "sudo ./run_lab.sh clean finds nothing",
        (cleaned.returncode, cleaned.stdout) == (0, "nothing to clean\n"),
        cleaned.stdout + cleaned.stderr,
    )


def main() -> None:
    """Run all commands; print a PASS line per check and end with 1 at the first FAIL."""
    if shutil.which("sudo") is None:
        fail("sudo is installed", "type: apt install sudo")
    subprocess.run(["modprobe", "mac80211_hwsim", "radios=0"], check=True)
    before = state()
    settle_in()
    for part in (with_sudo, doctor_and_clean):
        began = time.monotonic()
        part()
        print(f"     {part.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    untouched("the commands leave nothing on the machine", before)
    print("PASS sudo", flush=True)


if __name__ == "__main__":
    main()
    sys.exit(0)

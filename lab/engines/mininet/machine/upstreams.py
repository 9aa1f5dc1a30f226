"""The upstream projects whose sources the emulation uses, at pinned commits.

`setup-emulation` fetches them into the user's cache folder. A machine without a network takes them
from a kit (`lab.kit`), or uses a copy of another machine's cache folder:

CACHE/upstreams/NAME   the sources at the pinned commit: a git clone, or a copy with the
                       commit in a file `.commit`
CACHE/vm/              the VM's kernel and modules (see vm_kernel.py)
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from lab import kit, sudo
from lab.engines.mininet.machine import shell
from lab.errors import CommandFailed, MachineLacks


@dataclass(frozen=True)
class Upstream:
    name: str
    url: str
    commit: str
    reason: str
    optional: bool = False


UPSTREAMS = (
    Upstream(
        "pox",
        "https://github.com/noxrepo/pox",
        "20d291825de5e1038e4500382e842e4f95b5731a",
        "the SDN controller",
    ),
    Upstream(
        "mininet",
        "https://github.com/mininet/mininet",
        "6eb8973c0bfd13c25c244a3871130c5e36b5fbd7",
        "hosts, switches, links",
    ),
    Upstream(
        "mininet-wifi",
        "https://github.com/intrig-unicamp/mininet-wifi",
        "93721b0477950585553d0d85c027ee66b43b6335",
        "stations, access points",
    ),
    Upstream(
        "mac80211_hwsim_mgmt",
        "https://github.com/ramonfontes/mac80211_hwsim_mgmt",
        "9d2cb2138bc41d1ee0227b4770aa8fc76f52fa13",
        "makes simulated radios",
    ),
    Upstream(
        "wmediumd",
        "https://github.com/ramonfontes/wmediumd",
        "1ea88d531556bf8e85466a8a0820b29a1d303857",
        "a second model of the radio channel",
        optional=True,
    ),
)


def cache() -> Path:
    """Return this user's cache folder, which may not exist yet."""
    return sudo.user_cache()


def folder(name: str = "") -> Path:
    """Return the folder with the sources of the upstream project `name`.

    Without a name, return the folder that contains all upstream projects.
    """
    return cache() / "upstreams" / name


def hwsim_mgmt() -> Path:
    """Return the path of hwsim_mgmt, the program that makes and removes simulated radios."""
    return folder("mac80211_hwsim_mgmt") / "hwsim_mgmt" / "hwsim_mgmt"


def wmediumd() -> Path:
    """Return the path of wmediumd, a program with an alternative model of the radio channel."""
    return folder("wmediumd") / "wmediumd" / "wmediumd"


def commit(path: Path) -> str | None:
    """Return the commit of the sources in a folder; None if it is unknown.

    The commit is read from the file `.commit` of a copy, or from `.git/HEAD` of a clone. If HEAD
    names a branch, git finds the commit. The network is not used.
    """
    stamp = path / ".commit"
    if stamp.is_file():
        return stamp.read_text().strip()
    head = path / ".git" / "HEAD"
    if not head.is_file():
        return None
    text = head.read_text().strip()
    if not text.startswith("ref:"):
        return text
    try:
        return shell.run(
            ["git", "-c", "safe.directory=*", "-C", str(path), "rev-parse", "HEAD"],
            f"find the commit of {path}",
        ).strip()
    except CommandFailed:
        return None


def present(upstream: Upstream) -> bool:
    """Return whether the cache has the sources of an upstream project at the pinned commit."""
    return commit(folder(upstream.name)) == upstream.commit


def fetch(upstream: Upstream) -> str:
    """Fetch an upstream project into the cache at its pinned commit; return what was done, as text.

    1) If the sources are at the pinned commit, nothing is done and the network is not used.
    2) Sources at another commit are not overwritten: `MachineLacks` is raised.
    3) Otherwise the commit is fetched, or copied from the kit, into a temporary folder next to the
       target folder. The temporary folder is renamed when it is complete. `MachineLacks` is raised
       if this fails.
    """
    target = folder(upstream.name)
    if present(upstream):  # 1
        return "already there"
    if target.exists() and any(target.iterdir()):  # 2
        raise MachineLacks(
            f"fetch {upstream.name}: {target} is at {commit(target) or 'no commit'}, "
            f"not at {upstream.commit}. Try: mv {target} {target}.other, "
            "then ./run_lab.sh setup-emulation"
        )
    partial = target.with_name(f"{upstream.name}.partial-{os.getpid()}")
    packed = kit.part(kit.UPSTREAMS)
    try:  # 3
        partial.mkdir(parents=True)
        if packed:
            _copy(packed / upstream.name, partial, upstream)
        else:
            _clone(upstream, partial)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except CommandFailed as problem:
        raise MachineLacks(
            f"fetch {upstream.name}: {shell.last_line(problem)}. With a network, try: "
            f"./run_lab.sh setup-emulation; without one, copy {target} from a machine that has it"
        ) from problem
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return "copied from the kit" if packed else "fetched"


def _clone(upstream: Upstream, into: Path) -> None:
    git = ["git", "-c", "advice.detachedHead=false", "-C", str(into)]
    doing = f"fetch {upstream.name} from {upstream.url}"
    shell.run([*git, "init", "-q"], doing)
    shell.run(
        [*git, "fetch", "-q", "--depth=1", upstream.url, upstream.commit],
        doing,
        env=_no_questions(),
        timeout_s=600,
    )
    shell.run([*git, "checkout", "-q", "FETCH_HEAD"], doing)


def _copy(packed: Path, into: Path, upstream: Upstream) -> None:
    if commit(packed) != upstream.commit:
        raise MachineLacks(
            f"copy {upstream.name} from the kit: {packed} is at {commit(packed) or 'no commit'}, "
            f"not at {upstream.commit}. Unpack the kit again"
        )
    shutil.copytree(packed, into, symlinks=True, dirs_exist_ok=True)


def require() -> Path:
    """Return the folder of all upstream projects.

    Raises `MachineLacks` if a required project is missing. The message names the missing ones.
    """
    missing = [each.name for each in UPSTREAMS if not each.optional and not present(each)]
    if missing:
        raise MachineLacks(
            f"start the emulation: {', '.join(missing)} not found in {folder()}. "
            "Try: ./run_lab.sh setup-emulation"
        )
    return folder()


def _no_questions() -> dict[str, str]:
    """Return an environment in which git fails instead of asking for a password."""
    return os.environ | {"GIT_TERMINAL_PROMPT": "0"}

"""Find the cache folder of the user who typed `sudo`, and leave no file of root in it.

Under sudo this process is root, and HOME may be root's. The command `setup-emulation` has written
into the user's cache folder, so root has to use that folder too.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path


def caller() -> tuple[int, int] | None:
    """Return the user id and group id of the user who called sudo.

    Return None if this process is not root or was not started by sudo.
    """
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    return (int(uid), int(gid)) if os.geteuid() == 0 and uid.isdigit() and gid.isdigit() else None


def user_cache() -> Path:
    """Return the absolute path of the user's cache folder, which may not exist yet.

    It is $MULTIPATH_LAB_CACHE, or else `multipath-lab` in $XDG_CACHE_HOME or ~/.cache. Under sudo,
    `~` is the home of the user who called sudo.
    """
    given = os.environ.get("MULTIPATH_LAB_CACHE")
    if given:
        return Path(given).absolute()
    user_cache = os.environ.get("XDG_CACHE_HOME") or _home() / ".cache"
    return Path(user_cache).absolute() / "multipath-lab"


def user_data() -> Path:
    """Return the absolute path of the folder for runs of a lab that pip installed.

    It is `multipath-lab` in $XDG_DATA_HOME or ~/.local/share, and may not exist yet.
    """
    given = os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share"
    return Path(given).absolute() / "multipath-lab"


def _home() -> Path:
    owner = caller()
    if owner:
        try:
            return Path(pwd.getpwuid(owner[0]).pw_dir)
        except KeyError:  # the caller has no entry in the list of users
            pass
    return Path.home()


def give_away(folder: Path) -> None:
    """Give a folder and all in it to the user who called sudo. Do nothing without sudo."""
    if owner := caller():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *owner, follow_symlinks=False)


def give_cache_away() -> None:
    """Give the files that root has written into the cache folder to the user who called sudo.

    Do nothing without sudo. Also do nothing if the cache folder is outside the user's home, because
    several users may share such a folder.
    """
    owner, top, home = caller(), user_cache(), _home()
    if owner is None or not top.is_dir() or home not in top.parents:
        return
    between = [each for each in top.parents if home in each.parents]
    for path in (*between, top, *top.rglob("*")):
        try:
            if path.lstat().st_uid == 0:
                os.chown(path, *owner, follow_symlinks=False)
        except FileNotFoundError:  # a temporary file of another process
            continue

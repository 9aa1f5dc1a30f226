"""Make Mininet-WiFi importable quickly: put the upstreams on the path, leave out what only its plots need.

Mininet-WiFi imports matplotlib, numpy and pkg_resources for its graphs, energy monitor and telemetry, which this
emulation does not use. Under software emulation they cost half a minute, so empty modules stand in for them unless the
real ones are loaded already.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

UNUSED = (
    *(
        "matplotlib",
        "matplotlib.pyplot",
        "matplotlib.patches",
        "matplotlib.image",
        "matplotlib.animation",
        "matplotlib.style",
    ),
    *(
        "matplotlib.cbook",
        "mpl_toolkits",
        "mpl_toolkits.mplot3d",
        "numpy",
        "numpy.random",
        "pkg_resources",
        "pylab",
    ),
)


class _Anything:
    """Stands for any function, object or base class of a module that is never really used."""

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: object, **_keywords: object) -> _Anything:
        return self

    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


class _Unused(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


def prepare(upstreams: Path) -> None:
    """Make `import mininet` and `import mn_wifi` work from this folder of upstream sources."""
    for name in ("mininet-wifi", "mininet"):
        folder = str(upstreams / name)
        if folder not in sys.path:
            sys.path.insert(0, folder)
    for name in UNUSED:
        sys.modules.setdefault(name, _Unused(name))

"""Make Mininet-WiFi importable, and let its import skip packages that the emulation never uses.

Mininet-WiFi imports matplotlib, numpy and pkg_resources for its graphs, energy monitor and
telemetry, which this emulation does not use. In a VM without KVM they take half a minute to import.
So empty modules replace them, unless the real ones are loaded already.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

PYPLOT = ("pyplot", "patches", "image", "animation", "style", "cbook")
UNUSED = (
    *("matplotlib", *(f"matplotlib.{name}" for name in PYPLOT)),
    *("mpl_toolkits", "mpl_toolkits.mplot3d"),
    *("numpy", "numpy.random", "pkg_resources", "pylab"),
)


class _Anything:
    """Stands in for any function, object or base class of a package that is never used.

    Each attribute and each call returns the object itself. As a base class it is left out.
    """

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: object, **_keywords: object) -> _Anything:
        return self

    def __mro_entries__(self, _bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


class _Unused(types.ModuleType):
    """An empty module from which any name can be imported."""

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


def prepare(upstreams: Path) -> None:
    """Let `import mininet` and `import mn_wifi` find the sources in the folder `upstreams`.

    Empty modules replace the packages in `UNUSED`, unless they are loaded already.
    """
    for name in ("mininet-wifi", "mininet"):
        folder = str(upstreams / name)
        if folder not in sys.path:
            sys.path.insert(0, folder)
    for name in UNUSED:
        sys.modules.setdefault(name, _Unused(name))

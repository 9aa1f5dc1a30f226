"""Run a script for stock Mininet-WiFi: `python stock.py SCRIPT ARGUMENT...`

Mininet-WiFi is the unpatched upstream. Only matplotlib and other packages that the script does not
use, and that take half a minute to import in a VM, are replaced by empty modules.
"""

import runpy
import sys

from lab.engines.mininet.machine.upstreams import folder
from lab.engines.mininet.network.nodes import prepare

prepare(folder())
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")

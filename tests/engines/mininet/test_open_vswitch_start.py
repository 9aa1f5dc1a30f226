"""When Open vSwitch starts in the VM; shell functions replace the programs."""

import subprocess

from vm import guest

SCRIPT = """
say() { echo "say $*"; }
for each in modprobe mkdir cp ovsdb-server ovs-vswitchd sleep; do
    eval "$each() { echo $each; }"
done
times=(8.31 9.99 10.01)
read() { uptime=${times[0]}; times=("${times[@]:1}"); }
. "$1"
start_switches switches.db
"""


def test_open_vswitch_waits_until_it_can_count_the_processors():
    """The kernel's clock shows 8.31, 9.99 and 10.01 s. Before 10 s Open vSwitch counts no
    processors."""
    argv = ["bash", "-c", SCRIPT, "bash", str(guest.HERE / "open_vswitch.sh")]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True).stdout
    assert ran.split("\n")[:3] == ["sleep", "sleep", "modprobe"]
    assert ran.endswith("ovsdb-server\novs-vswitchd\nsay switches are running\n")

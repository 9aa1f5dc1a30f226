"""The Debian packages that the emulation needs.

`setup-emulation` installs the packages. If a program is missing, `doctor` and the error of
`shell.run` name the package that contains it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A Debian package, why the emulation needs it, and the programs in it that the lab runs."""

    name: str
    reason: str
    programs: tuple[str, ...] = ()


PACKAGES = (
    Package(
        "openvswitch-switch",
        "the switches",
        ("ovs-vsctl", "ovs-ofctl", "ovs-vswitchd", "ovsdb-server", "ovsdb-tool"),
    ),
    Package("mininet", "mnexec, which enters a host's namespace", ("mnexec",)),
    Package("hostapd", "the access points", ("hostapd",)),
    Package("wpasupplicant", "Mininet-WiFi checks for it", ("wpa_supplicant",)),
    Package("iw", "associates stations and lists them", ("iw",)),
    Package("iproute2", "links, addresses, MPTCP endpoints, queues", ("ip", "tc", "ss")),
    Package("iperf3", "reference measurements, traffic of exported scripts", ("iperf3",)),
    Package("iputils-ping", "ping inside hosts, pingall of Mininet's prompt", ("ping",)),
    Package("iperf", "iperf of Mininet's prompt"),
    Package("telnet", "iperf of Mininet's prompt waits for its server with it"),
    Package("tcpdump", "--pcap", ("tcpdump",)),
    Package("rfkill", "Mininet-WiFi unblocks radios with it", ("rfkill",)),
    Package("net-tools", "ifconfig, which Mininet calls", ("ifconfig",)),
    Package("psmisc", "killall, which Mininet calls", ("killall",)),
    Package("wireless-regdb", "without it the kernel silently refuses every 5 GHz channel"),
    Package("ethtool", "switches segmentation offloads off", ("ethtool",)),
    Package("qemu-system-x86", "the VM, where the kernel lacks modules", ("qemu-system-x86_64",)),
    Package("libfaketime", "slows the VM's clocks on request (MULTIPATH_LAB_VM_DILATION)"),
    Package("busybox-static", "the VM's first file system", ("busybox",)),
    Package("kmod", "loads modules", ("modprobe", "depmod")),
    Package("clang", "compiles eBPF: the WiFi cell, coupled congestion control", ("clang",)),
    Package("bpftool", "loads the WiFi cell, reads the kernel's types", ("bpftool",)),
    Package("libbpf-dev", "its headers, and the library that loads congestion control"),
    Package("mptcpize", "makes other programs use Multipath TCP", ("mptcpize",)),
    Package("libnl-3-dev", "builds hwsim_mgmt"),
    Package("libnl-genl-3-dev", "builds hwsim_mgmt"),
    Package("libnl-route-3-dev", "builds wmediumd"),
    Package("libconfig-dev", "builds wmediumd"),
    Package("libevent-dev", "builds hwsim_mgmt"),
    Package("pkg-config", "builds hwsim_mgmt", ("pkg-config",)),
    Package("make", "builds hwsim_mgmt", ("make",)),
    Package("gcc", "builds hwsim_mgmt", ("gcc",)),
    Package("git", "fetches the upstream projects", ("git",)),
)


def install_command(program: str) -> str:
    """Return the command that installs a program, or a hint if its package is unknown."""
    for package in PACKAGES:
        if program in package.programs:
            return f"sudo apt install {package.name}"
    if program == "hwsim_mgmt":
        return "./run_lab.sh setup-emulation"
    return f"install the package that contains '{program}'"

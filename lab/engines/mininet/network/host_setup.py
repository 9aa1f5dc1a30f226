"""Configure a host: addresses, routes, sysctls, offloads, MPTCP endpoints and mounts.

Some functions yield lines for `ip -batch`, so that one `ip` process can run all lines of a host.
The other functions make system calls in the network namespace of the calling thread. Their
parameter `enter` only serves to record the equivalent shell commands in the run's script
commands.sh.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from errno import EOPNOTSUPP
from pathlib import Path

from lab.engines.mininet.kernel.path_manager import ENDPOINT_FLAGS, PathManager
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network.joins import MAX_SUBFLOWS
from lab.errors import LabError
from lab.scenario.interfaces import endpoint_of
from lab.scenario.schema import Multipath, Role
from lab.topologies.topology import Interface, Wiring

SOCKET_BUFFERS = "10240 87380 16777216"  # minimum, default, maximum [bytes], as in Mininet
SYSCTL = Path("/proc/sys")
ALLOWED = (
    SYSCTL / "net/ipv4/tcp_allowed_congestion_control"
)  # as a default of other namespaces, too
NEWER = {  # sysctls that older kernels lack
    # a connection whose program was killed keeps its host's namespace, with the radio, for 60 s
    "net.mptcp.close_timeout": "5",
    "net.mptcp.blackhole_timeout": "0",  # a lost SYN must not switch MPTCP off for an hour
}
SIOCETHTOOL = 0x8946
CLONE_FS, CLONE_NEWNS = 0x200, 0x20000
MS_BIND, MNT_DETACH = 0x1000, 2
OFFLOADS = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C}  # ETHTOOL_STSO, _SGSO, _SGRO (linux/ethtool.h)
Enter = Callable[[list[str]], list[str]]
"""A function that returns the command line that runs a given command inside a host.

The functions here use it only for the journal, which records the command equivalent to each system
call.
"""


def settings(interfaces: Iterable[str]) -> dict[str, str]:
    """Return the sysctls of a host by name. `interfaces` are the names of its interfaces.

    The sysctls enable MPTCP, also after a lost SYN, enlarge socket buffers, and switch off IPv6 and
    the cache of TCP metrics. They make the kernel drop connections of ended programs sooner. They
    make each interface answer ARP requests only for its own addresses.
    """
    found = {
        "net.mptcp.enabled": "1",
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_orphan_retries": "1",  # the same for a single TCP connection or subflow
        "net.ipv4.tcp_rmem": SOCKET_BUFFERS,
        "net.ipv4.tcp_wmem": SOCKET_BUFFERS,
        "net.ipv6.conf.all.disable_ipv6": "1",
        "net.ipv6.conf.default.disable_ipv6": "1",
    }
    found |= {key: value for key, value in NEWER.items() if _is_here(key)}
    for name in ("all", "default", *interfaces):
        keys = (("rp_filter", "0"), ("arp_ignore", "1"), ("arp_announce", "2"))
        found |= {f"net.ipv4.conf.{name}.{key}": value for key, value in keys}
    return found


def unpaced_default() -> dict[str, str]:
    """Return the sysctl of a congestion control that does not pace.

    Sockets start with the machine's own. If this is BBR, the kernel also paces them after they have
    changed to another one.
    """
    allowed = ALLOWED.read_text().split() if ALLOWED.exists() else []
    return {"net.ipv4.tcp_congestion_control": "cubic" if "cubic" in allowed else "reno"}


def _is_here(name: str) -> bool:
    return (SYSCTL / name.replace(".", "/")).exists()


def set_until_clean_up(name: str, value: str, ledger: Ledger) -> None:
    """Set a sysctl of the machine itself. The clean-up of the run restores the old value.

    `ledger` records the old value. This does nothing if the kernel does not have the sysctl.
    """
    setting = SYSCTL / name.replace(".", "/")
    if setting.exists():
        ledger.record("sysctl", name=name, value=setting.read_text().strip())
        shell.journal_command(["sysctl", "-qw", f"{name}={value}"])
        setting.write_text(value)


def addresses(interfaces: tuple[Interface, ...]) -> Iterator[str]:
    """Yield the `ip -batch` lines that configure all interfaces of one host: addresses and routes.

    All of 10.0.0.0/8 is reachable without a gateway. Each interface has a routing table, selected
    by the source address of a packet. So the packets of a subflow always use the interface that has
    the subflow's source address. Packets without a source address use the first interface.
    """
    yield "link set dev lo up"
    for table, each in enumerate(interfaces, 1):
        yield f"link set dev {each.name} up gso_max_segs 1"
        yield _own_route(each, table)
        for address in (each.address, *each.further):
            yield f"addr add {address}/32 dev {each.name}"
            yield f"rule add from {address} table {table}"
    yield _route_of_all(interfaces)


def flags(role: Role, is_fullmesh: bool = False) -> str:
    """Return the flags of `ip mptcp endpoint` for a role; "" for none."""
    return " ".join([ENDPOINT_FLAGS.get(role, ""), *(["fullmesh"] if is_fullmesh else [])]).strip()


def take_down(interface: Interface, interfaces: tuple[Interface, ...], role: Role) -> Iterator[str]:
    """Yield the `ip -batch` lines that remove the addresses of one of a host's interfaces.

    The kernel then closes its subflows, and tells the peers over other ones (REMOVE_ADDR).
    """
    for ident, each, address in _endpoints(interfaces):
        if each == interface:
            yield f"addr del {address}/32 dev {each.name}"
            if role != "none":
                yield f"mptcp endpoint delete id {ident}"


def bring_up(
    interface: Interface, wiring: Wiring, role: Role, is_fullmesh: bool = False
) -> Iterator[str]:
    """Yield the `ip -batch` lines that undo `take_down`. The kernel then opens subflows (MP_JOIN),
    or announces the addresses (ADD_ADDR).

    With the last address of an interface, the kernel has also removed its routes and ARP entries.
    """
    interfaces = wiring.of(interface.node)
    for _, each, address in _endpoints(interfaces):
        if each == interface:
            yield f"addr add {address}/32 dev {each.name}"
    yield _own_route(interface, interfaces.index(interface) + 1)
    if interface == interfaces[0]:
        yield _route_of_all(interfaces)
    yield from _neighbours(interface, wiring)
    yield from endpoint_changes(interface, interfaces, "none", role, is_fullmesh)


def endpoint_changes(
    interface: Interface,
    interfaces: tuple[Interface, ...],
    before: Role,
    role: Role,
    is_fullmesh: bool = False,
) -> Iterator[str]:
    """Yield the `ip -batch` lines that change the MPTCP endpoints of one of a host's interfaces.

    The kernel then opens subflows (MP_JOIN), ends them (REMOVE_ADDR), or changes their priority
    (MP_PRIO).
    """
    if role == before:
        return
    for ident, each, address in _endpoints(interfaces):
        if each != interface:
            continue
        if role == "none":
            yield f"mptcp endpoint delete id {ident}"
        elif before == "none":
            words = flags(role, is_fullmesh)
            yield f"mptcp endpoint add {address} id {ident} dev {each.name} {words}"
        else:
            yield f"mptcp endpoint change id {ident} {'backup' if role == 'backup' else 'nobackup'}"


def _endpoints(interfaces: tuple[Interface, ...]) -> Iterator[tuple[int, Interface, str]]:
    """Yield number, interface and address of the MPTCP endpoints that a host can have."""
    own = ((each, address) for each in interfaces for address in (each.address, *each.further))
    yield from ((ident, *each) for ident, each in enumerate(own, 1))


def _own_route(interface: Interface, table: int) -> str:
    return f"route replace 10.0.0.0/8 dev {interface.name} table {table}"


def _route_of_all(interfaces: tuple[Interface, ...]) -> str:
    return f"route replace 10.0.0.0/8 dev {interfaces[0].name} src {interfaces[0].address}"


def radio_mac(interface: Interface) -> Iterator[str]:
    """Yield `ip -batch` lines that take a radio down and change its MAC address."""
    yield f"link set dev {interface.name} down"
    yield f"link set dev {interface.name} address {interface.mac}"


def neighbours(host: str, wiring: Wiring) -> Iterator[str]:
    """Yield the `ip -batch` lines that give `host` permanent ARP entries for all other hosts.

    Without these entries, hosts would send ARP requests. The requests fail while the controller is
    stopped.
    """
    for mine in wiring.of(host):
        yield from _neighbours(mine, wiring)


def _neighbours(mine: Interface, wiring: Wiring) -> Iterator[str]:
    for other in wiring.interfaces:
        for address in (other.address, *other.further) if other.node != mine.node else ():
            yield f"neigh replace {address} lladdr {other.mac} dev {mine.name} nud permanent"


def write_settings(values: dict[str, str], enter: Enter) -> None:
    shell.journal_command(
        enter(["sysctl", "-qw", *(f"{key}={value}" for key, value in values.items())])
    )
    for key, value in values.items():
        (SYSCTL / key.replace(".", "/")).write_text(value)


def without_offloads(interfaces: Iterable[str], enter: Enter) -> None:
    """Switch TSO, GSO and GRO off on `interfaces`, in the network namespace of the calling thread.

    With these offloads, one packet could be a whole burst of segments. Queues count packets, and
    OpenFlow meters pass or drop whole packets.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name in interfaces:
            switches = [word for key in OFFLOADS for word in (key, "off")]
            shell.journal_command(enter(["ethtool", "-K", name, *switches]))
            for command in OFFLOADS.values():
                _ethtool(control, name, command, 0)


def _ethtool(control: socket.socket, interface: str, command: int, value: int) -> None:
    request = bytearray(struct.pack("=II", command, value))
    pointer = (ctypes.c_char * len(request)).from_buffer(request)
    argument = struct.pack("16sP", interface.encode(), ctypes.addressof(pointer))
    try:
        fcntl.ioctl(control, SIOCETHTOOL, argument)
    except OSError as problem:
        if problem.errno != EOPNOTSUPP:  # a radio has no offloads
            raise


def endpoints(
    interfaces: tuple[Interface, ...],
    roles: Mapping[Interface, Role],
    multipath: Multipath,
    enter: Enter,
) -> None:
    """Configure the kernel's MPTCP path manager in the network namespace of the calling thread.

    Each address of `interfaces` becomes an MPTCP endpoint, for what `roles` says: every connection
    opens a subflow from this address, or announces it. `multipath` has further flags and the
    limits. `enter` only serves to record the equivalent shell commands.
    """
    manager, limits = PathManager(), multipath.limits
    subflows = MAX_SUBFLOWS if limits.subflows is None else limits.subflows
    accepted = limits.add_addr_accepted
    try:
        words = ["subflow", str(subflows), "add_addr_accepted", str(accepted)]
        shell.journal_command(enter(["ip", "mptcp", "limits", "set", *words]))
        manager.limit(subflows, accepted)
        for ident, each, address in _endpoints(interfaces):
            said = endpoint_of(multipath, each)
            own = flags(roles[each], said is not None and said.is_fullmesh)
            if not own:
                continue
            endpoint = [address, "id", str(ident), "dev", each.name, *own.split()]
            shell.journal_command(enter(["ip", "mptcp", "endpoint", "add", *endpoint]))
            manager.add(address, ident, socket.if_nametoindex(each.name), own)
    finally:
        manager.close()


def bind_file(pids: Sequence[int], source: Path, target: Path) -> None:
    """Mount the file `source` over the file `target`, in the mount namespace of each process.

    The mount disappears with the namespace. Raises `LabError` if this process is not root.
    """
    # a thread that has entered a mount namespace cannot return, so it is one of its own
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_bind_file, pids, source, target).result()


def keep_namespace(pid: int, path: Path) -> None:
    """Keep the network namespace of the process `pid` alive by mounting it on the new file `path`.

    The namespace exists until the file is unmounted, even after all its processes have ended.
    Raises `LabError` if this process is not root.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    libc = ctypes.CDLL(None, use_errno=True)
    paths = (os.fsencode(f"/proc/{pid}/ns/net"), os.fsencode(path))
    _check_mount(libc.mount(*paths, None, ctypes.c_ulong(MS_BIND), None), path)


def let_namespace_go(path: Path) -> None:
    """Undo `keep_namespace`: unmount and delete the file. Do nothing if the file does not exist."""
    ctypes.CDLL(None).umount2(os.fsencode(path), MNT_DETACH)
    path.unlink(missing_ok=True)


def _bind_file(pids: Sequence[int], source: Path, target: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    namespaces = [os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY) for pid in pids]
    try:
        _check_mount(libc.unshare(CLONE_FS), source)
        for namespace in namespaces:
            _check_mount(libc.setns(namespace, CLONE_NEWNS), source)
            paths = (os.fsencode(source), os.fsencode(target))
            _check_mount(libc.mount(*paths, None, ctypes.c_ulong(MS_BIND), None), source)
    finally:
        for namespace in namespaces:
            os.close(namespace)


def _check_mount(status: int, source: Path) -> None:
    if status != 0:
        problem = os.strerror(ctypes.get_errno())
        raise LabError(f"mount {source}: {problem}. The emulation needs root")


class KeptNamespaces:
    """Keep the network namespace of each WiFi station alive, mounted on `folder`/STATION.netns.

    The radio of a station is in this namespace. If a run is killed, open connections can delay the
    end of the namespace for a minute. Because the namespace is mounted, the clean-up can enter it
    and take the radio out.
    """

    def __init__(self, folder: Path, stations: Iterable[str]) -> None:
        self._files = {station: folder / f"{station}.netns" for station in stations}

    def record(self, ledger: Ledger) -> None:
        """Record the mounts in the ledger, the list of what the clean-up has to remove."""
        for file in self._files.values():
            ledger.record("namespace", path=str(file))

    def mount(self, pids: Mapping[str, int]) -> None:
        """Mount the network namespace of each station.

        `pids` maps each station to a process in its namespace.
        """
        for station, file in self._files.items():
            keep_namespace(pids[station], file)

    def unmount(self) -> None:
        for file in self._files.values():
            let_namespace_go(file)

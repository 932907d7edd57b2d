"""The network of a lab with real containers: a namespace for the control plane and one per node.

`up` makes it. This process holds the namespaces open, and they have no name in the file system: they end with the
programs of the lab. A pair of virtual links connects the control plane with the real machine, and nothing else does; no
route leads from the real machine to nodes or pods, nor from them to other machines. Inside, the control plane is the
router between nodes, and its kube-proxy serves the addresses of Services. Links end with their namespace."""

import contextlib
import ipaddress
import json
import os
import subprocess
import threading
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import launching
from numalign.lab.errors import LabError

LINK: Final = "numalab"
"""The link on the real machine, with a number that no other lab has."""
OUTSIDE: Final = ipaddress.IPv4Network("198.18.0.0/16")
"""Reserved for tests of network devices (RFC 2544), so that hardly any machine has a route there. Each lab uses four
addresses of it."""
NODES: Final = ipaddress.IPv4Network("10.251.0.0/24")
PODS: Final = ipaddress.IPv4Network("10.250.0.0/16")
"""The addresses inside are the same in every lab: labs do not see each other."""
ROUTER: Final = str(NODES[1])
FIRST_NODE: Final = 10
MOST_LABS: Final = 100
SETTINGS: Final = {
    "ipv4/ip_forward": "1",
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    # Else rules apply to what a bridge passes on, and it sends nothing back to the node where it comes from.
    "bridge/bridge-nf-call-iptables": "0",
}
"""Of a network namespace; the real machine has its own."""


class NodeNetwork(Struct, frozen=True):
    """The network of a node: its namespace, its address, and those of its pods."""

    number: int
    namespace: int
    """An open file of this process."""

    @property
    def path(self) -> str:
        return _path(self.namespace)

    @property
    def address(self) -> str:
        return str(NODES[FIRST_NODE + self.number])

    @property
    def pods(self) -> IPv4Network:
        return ipaddress.IPv4Network(f"{PODS[256 * self.number]}/24")


class LabNetwork:
    """Closing it is not needed after a crash: the kernel does the same when the processes end."""

    def __init__(self, ip: str, services: str) -> None:
        self._ip = ip
        self._nodes: dict[int, NodeNetwork] = {}
        self._namespace = _new_namespace()
        try:
            self.number = self._connect()
            self._run(self._namespace, *_router_lines(self.address, services))
        except BaseException:
            os.close(self._namespace)
            raise

    @property
    def path(self) -> str:
        return _path(self._namespace)

    @property
    def address(self) -> str:
        """The address of the control plane, as the real machine and pods reach it."""
        return str(_outside(self.number)[1])

    @property
    def host_address(self) -> str:
        """The address of the real machine on the link."""
        return str(_outside(self.number)[2])

    def add_node(self) -> NodeNetwork:
        number = next(number for number in range(256) if number not in self._nodes)
        made = NodeNetwork(number, _new_namespace())
        link = f"node{number}"
        self._run(
            self._namespace,
            f"link add {link} type veth peer name eth0 netns {made.path}",
            f"link set {link} master nodes up",
            f"route replace {made.pods} via {made.address}",
        )
        self._run(
            made.namespace,
            "link set lo up",
            f"address add {made.address}/{NODES.prefixlen} dev eth0",
            "link set eth0 up",
            f"route add default via {ROUTER}",
        )
        self._nodes[number] = made
        return made

    def remove_node(self, node: NodeNetwork) -> None:
        del self._nodes[node.number]
        os.close(node.namespace)
        # The kernel removes the namespace, and with it the link, some time after the last program has ended.
        with contextlib.suppress(LabError):
            self._run(self._namespace, f"link delete node{node.number}")
        self._run(self._namespace, f"route delete {node.pods}")

    def close(self) -> None:
        for node in self._nodes.values():
            os.close(node.namespace)
        self._nodes.clear()
        os.close(self._namespace)
        with contextlib.suppress(LabError):
            _done([self._ip, "link", "delete", f"{LINK}{self.number}"])

    def _connect(self) -> int:
        """The first number that is free: to make a link of a taken name fails, so no two labs get the same."""
        taken = _routes(self._ip)
        for number in range(MOST_LABS):
            if any(_outside(number).overlaps(route) for route in taken):
                continue
            link = f"{LINK}{number}"
            make = [self._ip, "link", "add", link, "type", "veth", "peer", "name", "outside", "netns", self.path]
            made = subprocess.run(make, capture_output=True, text=True, check=False)
            if made.returncode == 0:
                address = f"{_outside(number)[2]}/{_outside(number).prefixlen}"
                _done([self._ip, "address", "add", address, "dev", link])
                _done([self._ip, "link", "set", link, "up"])
                return number
            if "exists" not in made.stderr:
                raise LabError(f"no virtual link can be made: {made.stderr.strip()}; use a whole virtual machine")
        raise LabError(f"{MOST_LABS} networks of labs are in use; `numalign lab down` ends labs")

    def _run(self, namespace: int, *lines: str) -> None:
        command = launching.command([self._ip, "-batch", "-"], (), network=_path(namespace))
        _done(command, "\n".join(lines))


def _router_lines(address: str, services: str) -> list[str]:
    return [
        "link set lo up",
        f"address add {address}/30 dev outside",
        "link set outside up",
        "link add nodes type bridge",
        f"address add {ROUTER}/{NODES.prefixlen} dev nodes",
        "link set nodes up",
        # For programs of the control plane: a packet needs a route before kube-proxy's rules change its address.
        f"route add {services} dev lo",
        # Pods reach the API server, whose address is looked up before, and nothing that listens on the real machine.
        f"rule add iif nodes to {OUTSIDE} blackhole pref 1",
    ]


def _outside(number: int) -> IPv4Network:
    return ipaddress.IPv4Network(f"{OUTSIDE[4 * number]}/30")


def _path(namespace: int) -> str:
    """As other processes open it."""
    return f"/proc/{os.getpid()}/fd/{namespace}"


def _new_namespace() -> int:
    """An open file that holds a new network namespace."""
    made: list[int] = []

    def make() -> None:
        # Of this thread only, which then ends.
        launching.unshare_network()
        for name, value in SETTINGS.items():
            with contextlib.suppress(FileNotFoundError):
                Path("/proc/sys/net", name).write_text(value)
        made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not made:
        raise LabError("no network namespace can be made; use a whole virtual machine or a privileged container")
    return made[0]


def _routes(ip: str) -> list[IPv4Network]:
    """The networks that this machine has routes to, without those to everywhere."""
    listed = json.loads(_done([ip, "-json", "-4", "route", "show"]) or "[]")
    found = [ipaddress.ip_network(each["dst"]) for each in listed if each.get("dst", "default") != "default"]
    return [each for each in found if isinstance(each, IPv4Network)]


def _done(command: list[str], lines: str = "") -> str:
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise LabError(f"{' '.join(command[-3:])}: {ran.stderr.strip()}")
    return ran.stdout

"""The configuration of a node's containerd, its network plugins, and what of the system they need.

`node` writes `files` and starts `containerd`; `preflight` asks for `missing`. Paths are those that programs of the node
see: /run is the node's own."""

import os
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.lab.containers.images import PAUSE, SOCKET
from numalign.lab.containers.network import NodeNetwork
from numalign.lab.errors import LabError

PLUGINS: Final = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
"""Where distributions put the network plugins."""
NEEDED_PLUGINS: Final = ("bridge", "host-local", "loopback")
PROGRAMS: Final = {"runc": "runc", "ip": "iproute2", "nft": "nftables"}
"""Debian's packages by program."""
PLUGINS_PACKAGE: Final = "containernetworking-plugins"
SBIN: Final = "/usr/local/sbin:/usr/sbin:/sbin"
STORE: Final = "/run/numalign/containerd"
"""Images and containers, in the node's folder."""
SETTINGS: Final = "/run/numalign/settings"
CONFIG: Final = f"{SETTINGS}/containerd.toml"


class SystemPrograms(Struct, frozen=True):
    """What a lab takes from the system, because it is not built with Go alone."""

    runc: str
    ip: str
    plugins: str


def find(program: str) -> str | None:
    """The program's path; many users do not have the folders of the administrator in their path."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}")


def plugin_folder() -> str | None:
    return next((each for each in PLUGINS if all(Path(each, name).exists() for name in NEEDED_PLUGINS)), None)


def missing() -> str:
    """One sentence about the packages to install; empty if none is missing."""
    packages = [package for program, package in PROGRAMS.items() if find(program) is None]
    if plugin_folder() is None:
        packages.append(PLUGINS_PACKAGE)
    if not packages:
        return ""
    return f"a lab with real containers needs {', '.join(packages)}; `apt-get install {' '.join(packages)}`"


def system() -> SystemPrograms:
    runc, ip, plugins = find("runc"), find("ip"), plugin_folder()
    if runc is None or ip is None or plugins is None:
        raise LabError(missing())
    return SystemPrograms(runc, ip, plugins)


def files(network: NodeNetwork, runc: str, plugins: str) -> dict[str, str]:
    """The content of the settings' folder by name."""
    networks = msgspec.json.format(msgspec.json.encode(_networks(network)), indent=2).decode()
    return {"containerd.toml": _containerd(runc, plugins), "lab.conflist": networks}


def _containerd(runc: str, plugins: str) -> str:
    return f"""\
version = 3
root = {_quoted(STORE)}
state = "/run/containerd"
[grpc]
address = {_quoted(SOCKET)}
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = {_quoted(PAUSE)}
[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
# A machine may not let even root make a process less likely to be killed for memory.
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = {_quoted(runc)}
SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [{_quoted(plugins)}]
conf_dir = {_quoted(SETTINGS)}
[plugins."io.containerd.nri.v1.nri"]
# Not those of the real machine.
plugin_path = "/run/nri/plugins"
plugin_config_path = "/run/nri/conf.d"
[plugins."io.containerd.nri.v1.nri".default_validator]
# A pod may ask that its containers wait for a plugin that is away.
enable = true
[plugins."io.containerd.internal.v1.opt"]
path = "/run/numalign/opt"
"""


def _quoted(path: str) -> str:
    """As TOML writes a string, which is as JSON does."""
    return msgspec.json.encode(path).decode()


def _networks(network: NodeNetwork) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "dataDir": "/run/numalign/addresses",
        "ranges": [[{"subnet": str(network.pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [bridge, {"type": "loopback"}]}

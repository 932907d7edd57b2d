"""Where the kubelets of Kubernetes distributions have their files, for the agent's values `preset`.

`objects.agent` renders the settings, and `tools/chart.py` writes the table for the chart. A folder is mounted rather
than a file where it holds little else: a kubelet replaces its files, and a mounted file would stay the old one. The
kubelet's server is asked where the kubelet runs inside another program and shows no command line (k3s, MicroK8s), or
has its configuration among the keys of the cluster (k0s)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, structs

from numalign.deploy.model import Agent, HostPath, Preset

ROOT: Final = "/var/lib/kubelet"
DEVICE_PLUGINS: Final = f"{ROOT}/device-plugins"
"""The device manager's folder: a constant of the kubelet, also where its root folder is another one."""
CLUSTER_AUTHORITY: Final = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
"""In the agent's container; it verifies kubelets whose certificate the cluster signed."""


class Layout(Struct, frozen=True, kw_only=True, rename="camel"):
    """The files of one kubelet; paths of the host."""

    kubelet_dir: str = ROOT
    kubelet_config: str = ""
    """Empty: from the kubelet's command line, else config.yaml in its folder."""
    host_paths: tuple[HostPath, ...] = ()
    configz: bool = False
    certificate_authority: str = ""
    """A path of the agent's container; empty: pki/kubelet.crt in the kubelet's folder."""


def _folders(*paths: str) -> tuple[HostPath, ...]:
    return tuple(HostPath(path=path) for path in paths)


LAYOUTS: Final[Mapping[Preset, Layout]] = {
    "kubeadm": Layout(),
    "k3s": Layout(configz=True, certificate_authority=CLUSTER_AUTHORITY),
    "rke2": Layout(host_paths=_folders("/var/lib/rancher/rke2/agent/etc")),
    "k0s": Layout(kubelet_dir="/var/lib/k0s/kubelet", configz=True, certificate_authority=CLUSTER_AUTHORITY),
    "microk8s": Layout(
        kubelet_dir="/var/snap/microk8s/common/var/lib/kubelet", configz=True, certificate_authority=CLUSTER_AUTHORITY
    ),
    "eks": Layout(host_paths=_folders("/etc/kubernetes/kubelet")),
    "bottlerocket": Layout(host_paths=_folders("/etc/kubernetes/kubelet")),
    "gke": Layout(host_paths=_folders("/home/kubernetes")),
    "aks": Layout(host_paths=_folders("/etc/default")),
    # These folders also hold keys of a control plane, so only the file is mounted.
    "openshift": Layout(host_paths=(HostPath(path="/etc/kubernetes/kubelet.conf", type="File"),)),
    "talos": Layout(
        kubelet_config="/etc/kubernetes/kubelet.yaml",
        host_paths=(HostPath(path="/etc/kubernetes/kubelet.yaml", type="File"),),
    ),
}


def layout(agent: Agent) -> Layout:
    """The preset, with what the values say instead."""
    preset = LAYOUTS[agent.preset]
    return structs.replace(
        preset,
        kubelet_dir=agent.kubelet_dir or preset.kubelet_dir,
        kubelet_config=agent.kubelet_config or preset.kubelet_config,
        host_paths=(*preset.host_paths, *agent.host_paths),
        configz=preset.configz or agent.configz.enabled,
        certificate_authority=agent.configz.certificate_authority or preset.certificate_authority,
    )

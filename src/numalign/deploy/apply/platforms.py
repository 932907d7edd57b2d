"""Which Kubernetes this is: the platform by its API, the distribution by what its nodes and its version say.

`numalign deploy detect` calls `detect`. Platform and version are found as the reference deployer finds them.
The distribution decides where kubelets keep their files, so it leads to the agent's `preset`. Nothing is
guessed: a cluster that shows no sign of a distribution is one of plain kubelets."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.deploy.apply import objects
from numalign.deploy.apply.objects import Ref, Tree
from numalign.deploy.apply.server import Server
from numalign.kube import errors
from numalign.kube.request import Selection

Kind = Literal["Kubernetes", "OpenShift", "HyperShift", "Unknown"]

CONFIG: Final = "config.openshift.io/v1"
CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
MANAGED: Final = frozenset({"eks", "bottlerocket", "gke", "aks"})
"""Distributions whose control plane is out of reach: no static pods."""
PLAIN: Final = "kubeadm"


class Platform(Struct, frozen=True, kw_only=True):
    kind: Kind
    version: str
    distribution: str
    """As `numalign deploy detect` names it; `kubeadm` also stands for plain kubelets of unknown origin."""
    preset: str
    """The value of agent.preset for its kubelets."""
    nodes: int = 0
    control_plane_nodes: int = 0
    api_server_ports: tuple[int, ...] = ()
    distributions: Mapping[str, int] = {}
    """How many nodes show which sign, where there are several."""
    hints: tuple[str, ...] = ()
    problem: str = ""
    """Why the platform is unknown."""
    supplied: bool = False
    """The user said so."""


class Sign(Struct, frozen=True):
    distribution: str
    preset: str
    shows: Callable[[Tree], bool]


def _version_has(text: str) -> Callable[[Tree], bool]:
    return lambda node: text in str(objects.at(node, "status", "nodeInfo", "kubeletVersion") or "")


def _image_is(text: str) -> Callable[[Tree], bool]:
    return lambda node: str(objects.at(node, "status", "nodeInfo", "osImage") or "").startswith(text)


def _labelled(prefix: str) -> Callable[[Tree], bool]:
    return lambda node: any(key.startswith(prefix) for key in objects.at(node, "metadata", "labels") or {})


def _provided_by(scheme: str) -> Callable[[Tree], bool]:
    return lambda node: str(objects.at(node, "spec", "providerID") or "").startswith(scheme)


SIGNS: Final = (
    Sign("k3s", "k3s", _version_has("+k3s")),
    Sign("rke2", "rke2", _version_has("+rke2")),
    Sign("k0s", "k0s", _version_has("+k0s")),
    Sign("microk8s", "microk8s", _labelled("microk8s.io/")),
    Sign("talos", "talos", _image_is("Talos")),
    Sign("bottlerocket", "bottlerocket", _image_is("Bottlerocket")),
    Sign("eks", "eks", _version_has("-eks-")),
    Sign("eks", "eks", _labelled("eks.amazonaws.com/")),
    Sign("gke", "gke", _version_has("-gke.")),
    Sign("gke", "gke", _labelled("cloud.google.com/gke-")),
    Sign("aks", "aks", _labelled("kubernetes.azure.com/")),
    Sign("kind", PLAIN, _provided_by("kind://")),
    Sign("minikube", PLAIN, _labelled("minikube.k8s.io/")),
)
"""The first that a node shows is its distribution."""


def distribution(node: Tree) -> tuple[str, str]:
    """The distribution of a node, and the preset for its kubelet."""
    found = next((sign for sign in SIGNS if sign.shows(node)), None)
    return (found.distribution, found.preset) if found is not None else (PLAIN, PLAIN)


def parsed(text: str) -> tuple[Kind, str] | None:
    """What `--platform` says: kind:version, in any case; None where it says nothing that is known."""
    kind, colon, version = text.partition(":")
    known: dict[str, Kind] = {"kubernetes": "Kubernetes", "openshift": "OpenShift", "hypershift": "HyperShift"}
    if not colon or not version or ":" in version or kind.lower() not in known:
        return None
    return known[kind.lower()], version


async def detect(server: Server, supplied: tuple[Kind, str] | None = None) -> Platform:
    """What the cluster is. Errors of the server other than a refusal are raised; `Unknown` has a problem."""
    kind, version, problem = await _kind_and_version(server) if supplied is None else (*supplied, "")
    nodes, blind = await _listed(server, "v1", "Node")
    slices, _ = await _listed(
        server, "discovery.k8s.io/v1", "EndpointSlice", "default", "kubernetes.io/service-name=kubernetes"
    )
    by_node = [distribution(node) for node in nodes]
    counts = Counter(name for name, _ in by_node)
    name, preset = Counter(by_node).most_common(1)[0][0] if by_node else (PLAIN, PLAIN)
    if kind in ("OpenShift", "HyperShift"):
        name = preset = "openshift"
        counts = Counter({name: len(nodes)})
    control_plane = sum(
        any(key in (objects.at(node, "metadata", "labels") or {}) for key in CONTROL_PLANE) for node in nodes
    )
    return Platform(
        kind=kind,
        version=version,
        distribution=name,
        preset=preset,
        nodes=len(nodes),
        control_plane_nodes=control_plane,
        api_server_ports=ports(slices),
        distributions=dict(counts) if len(counts) > 1 else {},
        hints=tuple(hints(name, kind, control_plane, counts, blind)),
        problem=problem,
        supplied=supplied is not None,
    )


async def _kind_and_version(server: Server) -> tuple[Kind, str, str]:
    try:
        found = await server.every(CONFIG, "ClusterVersion")
        if not found:
            return "Kubernetes", await server.version(), ""
        external = objects.at(
            await server.get(Ref(CONFIG, "Infrastructure", "cluster")), "status", "controlPlaneTopology"
        )
        operator = await server.get(Ref(CONFIG, "ClusterOperator", "openshift-apiserver"))
    except errors.Forbidden as problem:
        return "Unknown", "", str(problem)
    versions = objects.at(operator, "status", "versions") or [{}]
    return "HyperShift" if external == "External" else "OpenShift", str(versions[0].get("version") or ""), ""


async def _listed(
    server: Server, api_version: str, kind: str, namespace: str = "", labels: str = ""
) -> tuple[list[Tree], str]:
    """The objects, and why there are none where they may not be seen."""
    try:
        return await server.every(api_version, kind, namespace, Selection(labels=labels)), ""
    except errors.Forbidden:
        return [], f"you may not list {kind}s, so their distribution is not known"


def ports(slices: Iterable[Tree]) -> tuple[int, ...]:
    """The ports of the API server's endpoints: what a NetworkPolicy has to let through."""
    found = {port.get("port") for each in slices for port in each.get("ports") or ()}
    return tuple(sorted(port for port in found if isinstance(port, int)))


def hints(name: str, kind: Kind, control_plane: int, counts: Mapping[str, int], blind: str) -> Iterable[str]:
    if blind:
        yield blind
    if len(counts) > 1:
        listed = ", ".join(f"{count} of {each}" for each, count in sorted(counts.items()))
        yield f"the nodes are {listed}: give each its own group in agent.nodeGroups, with its preset"
    if name in MANAGED or kind == "HyperShift":
        yield "the control plane is managed: kube-scheduler cannot be replaced by a static pod; run numalign beside it"
    elif control_plane > 1 and name == PLAIN and kind == "Kubernetes":
        yield f"{control_plane} control-plane nodes: `deploy static-pod install` has to run on each of them"
    if name == "talos":
        yield "Talos enforces the pod security level baseline: the namespace of the agent needs privileged"
    if name == "bottlerocket":
        yield "Bottlerocket enforces SELinux: the agent may need seLinuxOptions in agent.securityContext"


def suggested_values(found: Platform) -> dict[str, Any]:
    """A values file for this cluster: only what differs from the defaults."""
    values: dict[str, Any] = {}
    if found.preset != PLAIN:
        values["agent"] = {"preset": found.preset}
    if found.api_server_ports and set(found.api_server_ports) - {443, 6443}:
        values["networkPolicy"] = {"apiServerPorts": sorted({443, *found.api_server_ports})}
    return values


def described(found: Platform) -> dict[str, Any]:
    """In the form of the reference deployer, and what we know beyond it."""
    reason = {"userSupplied": found.supplied, "autoDetected": not found.supplied and not found.problem}
    return {
        "platform": {**_reason(found.kind, reason), "discovered": found.kind},
        "version": {**_reason(found.version, reason), "discovered": found.version},
        "distribution": found.distribution,
        "preset": found.preset,
        "nodeCount": found.nodes,
        "controlPlaneNodeCount": found.control_plane_nodes,
        "apiServerPorts": list(found.api_server_ports),
        "distributions": dict(found.distributions),
        "hints": list(found.hints),
        "problem": found.problem,
        "values": suggested_values(found),
    }


def _reason(value: str, reason: Mapping[str, bool]) -> dict[str, str]:
    return {name: value if holds else "" for name, holds in reason.items()}


def lines(found: Platform) -> Sequence[str]:
    """The first line is the whole answer of the reference deployer."""
    about = [f"{found.kind}:{found.version}"]
    if found.problem:
        about.append(f"problem: {found.problem}")
    about.append(f"distribution: {found.distribution} (agent.preset: {found.preset})")
    about.append(f"nodes: {found.nodes}, of the control plane: {found.control_plane_nodes}")
    if found.api_server_ports:
        about.append(f"API server ports: {', '.join(map(str, found.api_server_ports))}")
    return [*about, *(f"hint: {each}" for each in found.hints)]

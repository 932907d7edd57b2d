"""The objects that a kubelet writes: Node, Lease, Events and mirror pods.

Pure: `heartbeat`, `loop` and `node` write them. Every field of `nodeInfo` is set, because typed clients reject a node
without one. Addresses derive from the number of the node, so they are the same in every run."""

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api.attributes import devicetable
from numalign.api.decode import quantity
from numalign.api.decode.quantity import Format
from numalign.api.objects import resourcenames
from numalign.kubelet import predicates
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.simulator import trees
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
DISK: Final = 100 << 30
COMPONENT: Final = "kubelet"
MIRROR: Final = "kubernetes.io/config.mirror"
HASH: Final = "kubernetes.io/config.hash"
SEEN: Final = "kubernetes.io/config.seen"
SOURCE: Final = "kubernetes.io/config.source"
HEALTHY: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class Identity(Struct, frozen=True):
    """The node's number, from which addresses derive, and how often it has booted."""

    number: int
    boots: int = 1

    @property
    def host_ip(self) -> str:
        place = self.number + 1
        return f"172.{16 + (place >> 16)}.{place >> 8 & 255}.{place & 255}"

    @property
    def pod_range(self) -> str:
        return f"10.{self.number >> 8 & 255}.{self.number & 255}.0/24"

    def pod_ip(self, pod: int) -> str:
        """The IP of the n-th pod on the node; IPs are reused."""
        return f"10.{self.number >> 8 & 255}.{self.number & 255}.{2 + pod % 250}"


def node(spec: NodeSpec, kubelet: Kubelet, state: KubeletState, identity: Identity, now: str) -> Tree:
    """The Node at registration."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
    }
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    inner: Tree = {"podCIDR": identity.pod_range, "podCIDRs": [identity.pod_range]}
    if spec.taints:
        inner["taints"] = [msgspec.to_builtins(taint) for taint in spec.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": spec.name,
            "labels": labels | dict(spec.labels),
            "annotations": annotations | dict(spec.annotations),
        },
        "spec": inner,
        "status": status(spec, kubelet, state, identity) | {"conditions": conditions([], now)},
    }


def status(spec: NodeSpec, kubelet: Kubelet, state: KubeletState, identity: Identity) -> Tree:
    """The status without conditions."""
    pods = {"pods": str(kubelet.settings.max_pods)}
    disk = {"ephemeral-storage": str(quantity.of(DISK, Format.BINARY_SI))}
    shared = devicetable.offered(spec.shared_devices) if spec.shared_devices is not None else {}
    # The kubelet knows nothing of them: Koordinator's controller writes them in its place.
    pods |= {name: str(quantity.of(amount)) for name, amount in shared.items()}
    return {
        "capacity": _amounts(kubelet.machine.capacity) | disk | pods,
        "allocatable": _amounts(predicates.allocatable(kubelet, state)) | disk | pods,
        "addresses": [{"type": "InternalIP", "address": identity.host_ip}, {"type": "Hostname", "address": spec.name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _info(spec, identity),
        "images": [],
    }


def conditions(before: list[Tree], now: str) -> list[Tree]:
    """Conditions of other components, then the kubelet's own, all healthy. Unchanged ones keep lastTransitionTime."""
    known = {each.get("type"): each for each in before}
    others = [each for each in before if each.get("type") not in {kind for kind, *_ in HEALTHY}]
    found = []
    for kind, state, reason, message in HEALTHY:
        old = known.get(kind, {})
        since = old.get("lastTransitionTime") if old.get("status") == state else None
        times = {"lastHeartbeatTime": now, "lastTransitionTime": since or now}
        found.append({"type": kind, "status": state, **times, "reason": reason, "message": message})
    return others + found


def is_ready(tree: Tree) -> bool:
    """Whether the Node has the Ready condition of a running kubelet."""
    found = (tree.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in found)


def lease(name: str, uid: str, renewed: str) -> Tree:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewed},
    }


class KubeletEvent(Struct, frozen=True):
    """An event that a kubelet records."""

    about: Tree
    """The involved object."""
    reason: str
    message: str
    type: str = "Normal"


def event(what: KubeletEvent, host: str, now: str, serial: int) -> Tree:
    about = what.about.get("metadata") or {}
    namespace = about.get("namespace", "")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name']}.{serial:016x}", "namespace": namespace or "default"},
        "involvedObject": {
            "apiVersion": what.about.get("apiVersion", "v1"),
            "kind": what.about.get("kind", "Pod"),
            "name": about["name"],
            "namespace": namespace,
            "uid": about.get("uid", ""),
        },
        "reason": what.reason,
        "message": what.message,
        "type": what.type,
        "source": {"component": COMPONENT, "host": host},
        "reportingComponent": COMPONENT,
        "reportingInstance": host,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def mirror_pod(pod: Mapping[str, Any], node: str, node_uid: str, now: str) -> Tree:
    """The mirror pod that the kubelet of this node creates for a static pod. The managers know the pod by its uid."""
    tree = trees.copied(dict(pod))
    digest = hashlib.sha256(trees.encoded([tree, node])).hexdigest()[:32]
    metadata = trees.metadata(tree)
    annotations = metadata.get("annotations") or {}
    tree["metadata"] = metadata | {
        "name": f"{metadata.get('name', '')}-{node}",
        "namespace": metadata.get("namespace") or "default",
        "annotations": annotations | {MIRROR: digest, HASH: digest, SEEN: now, SOURCE: "file"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}],
    }
    spec = tree.get("spec") or {}
    tolerations = [*(spec.get("tolerations") or ()), {"operator": "Exists", "effect": "NoExecute"}]
    return {"apiVersion": "v1", "kind": "Pod", **tree, "spec": spec | {"nodeName": node, "tolerations": tolerations}}


def boot_id(spec: NodeSpec, identity: Identity) -> str:
    return str(_uuid(spec.name, f"boot {identity.boots}"))


def _amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: _text(name, amount) for name, amount in amounts.items()}


def _text(resource: str, amount: int) -> str:
    if resource == resourcenames.CPU:
        return str(quantity.of_milli(amount))
    binary = resource == resourcenames.MEMORY or resourcenames.is_hugepages(resource)
    return str(quantity.of(amount, Format.BINARY_SI if binary else Format.DECIMAL_SI))


def _info(spec: NodeSpec, identity: Identity) -> Tree:
    version = f"v{spec.settings.minor}.0"
    return {
        "machineID": _uuid(spec.name, "machine").hex,
        "systemUUID": str(_uuid(spec.name, "system")),
        "bootID": boot_id(spec, identity),
        "kernelVersion": "6.12.0",
        "osImage": "numalign simulated node",
        "containerRuntimeVersion": "containerd://2.1.0",
        "kubeletVersion": version,
        "kubeProxyVersion": version,
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _uuid(name: str, what: str) -> uuid.UUID:
    return uuid.UUID(bytes=hashlib.sha256(f"{name}/{what}".encode()).digest()[:16], version=4)

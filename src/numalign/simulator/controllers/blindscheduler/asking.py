"""What a pod asks of a node, reduced to what the filters look at; equal pods share one `Ask`.

`scheduling` makes one for every pod that it sees, bound or not. Amounts are those of kube-scheduler spec 2: CPU in
thousandths, everything else in whole units; resizing in place is not looked at."""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from numalign.api.decode import decode
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import Pod, ResourceList
from numalign.simulator.controllers.framework import labelling
from numalign.simulator.trees import Tree

ORDER: Final = (resourcenames.CPU, resourcenames.MEMORY, "ephemeral-storage")
"""In which shortages are named; other resources follow."""
ABSENT_CPU: Final = 100
ABSENT_MEMORY: Final = 200 * 1024 * 1024
"""What scoring assumes of a container that asks for nothing."""

Port = tuple[str, str, int]
"""Address, protocol, number."""


@dataclass(frozen=True)
class Ask:
    amounts: tuple[tuple[str, int], ...]
    """By name, in the order in which shortages are told; zeros left out."""
    scored: tuple[int, int]
    """CPU and memory as scoring counts them."""
    ports: frozenset[Port] = frozenset()
    where: bytes = b""
    """All that node selectors, affinity and tolerations say, as a key."""
    spec: Tree = field(default_factory=dict, compare=False)
    """Of one such pod, for what `where` stands for."""


class Asks:
    """Remembers equal pods, since thousands of replicas are decoded once."""

    MOST: Final = 4096

    def __init__(self) -> None:
        self._known: dict[bytes, Ask] = {}

    def of(self, pod: Tree) -> Ask:
        spec = pod["spec"]
        where = _where(spec)
        key = msgspec.json.encode([_amounts_part(spec), spec.get("overhead"), spec.get("resources")]) + where
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self.MOST:
                self._known.clear()
            found = self._known[key] = _read(pod, where)
        return found


def _amounts_part(spec: Tree) -> list[object]:
    containers = [*(spec.get("initContainers") or ()), None, *spec["containers"]]
    fields = ("resources", "ports", "restartPolicy")
    return [None if each is None else [each.get(name) for name in fields] for each in containers]


def _where(spec: Tree) -> bytes:
    return msgspec.json.encode(
        [spec.get("nodeSelector"), labelling.required_affinity(spec), spec.get("tolerations")], order="deterministic"
    )


def _read(tree: Tree, where: bytes) -> Ask:
    pod = decode.decode(Pod, tree)
    amounts = {name: amount for name, amount in integers(requests.effective(pod)).items() if amount}
    first = [name for name in ORDER if name in amounts]
    ordered = [*first, *sorted(amounts.keys() - set(ORDER))]
    return Ask(
        tuple((name, amounts[name]) for name in ordered),
        _scored(tree),
        _ports(pod),
        where,
        {key: tree["spec"].get(key) for key in ("nodeSelector", "affinity", "tolerations")},
    )


def integers(amounts: ResourceList) -> dict[str, int]:
    """Resources that the scheduler counts (kube-scheduler spec 1.8), and pods."""
    counted = {name: amount for name, amount in amounts.items() if _is_counted(name)}
    return {name: amount.milli if name == resourcenames.CPU else amount.value for name, amount in counted.items()}


def _is_counted(name: str) -> bool:
    return name in (*ORDER, "pods") or resourcenames.is_hugepages(name) or "/" in name


def _scored(tree: Tree) -> tuple[int, int]:
    """The total with an assumed amount for each container that states none (kube-scheduler spec 2.3)."""
    assumed = {resourcenames.CPU: f"{ABSENT_CPU}m", resourcenames.MEMORY: str(ABSENT_MEMORY)}

    def filled(container: Tree) -> Tree:
        asked = (container.get("resources") or {}).get("requests") or {}
        return container | {"resources": {"requests": assumed | asked}}

    spec = tree["spec"]
    parts = {name: [filled(each) for each in spec.get(name) or ()] for name in ("containers", "initContainers")}
    total = integers(requests.effective(decode.decode(Pod, {"spec": spec | parts})))
    return total.get(resourcenames.CPU, 0), total.get(resourcenames.MEMORY, 0)


def _ports(pod: Pod) -> frozenset[Port]:
    lasting = [*pod.spec.containers, *(each for each in pod.spec.init_containers if each.is_sidecar)]
    wanted = [port for container in lasting for port in container.ports if port.host_port > 0]
    return frozenset((port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port) for port in wanted)

"""A cluster that acceptance scenarios run on: nodes of two zones, filled by padding, and one way to schedule pods.

The scenarios are those of the reference operator's end-to-end suites. A scenario chooses a target node and makes the
others unsuitable: padding pods, bound by name and held in one zone by a device of that zone, leave exactly the free
amounts that the scenario gives. `Site` is the same for embedded clusters and for real kubelets, because it speaks to
the API server only. Amounts are written as the catalogue writes them: "4/8Gi dev1:2" are 4 CPUs, 8Gi and two devices.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import ssl
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from numalign.api.decode import quantity

Tree = dict[str, Any]
Scope = Literal["container", "pod"]
Setting = Literal["second", "only", "extender"]
"""Our scheduler beside the stock one; in its place; the stock one with our extender."""
QoS = Literal["guaranteed", "burstable", "besteffort"]
SETTINGS: Final[tuple[Setting, ...]] = ("second", "only", "extender")
OWN, DEFAULT = "numalign", "default-scheduler"

PATIENCE: Final = 180.0
"""Seconds, for machines that run many tests at a time."""
LOOK: Final = 0.02
SPACE: Final = "default"
SCOPE_LABEL: Final = "example.com/scope"
DEVICES: Final = tuple(f"example.com/dev{number}" for number in (1, 2, 3))
CELLS: Final = tuple(f"example.com/cell{zone}" for zone in (0, 1))
"""A device per zone, by which a padding pod is held there."""
SHORT: Final = {
    **{name.rpartition("/")[2]: name for name in DEVICES},
    "hp2M": "hugepages-2Mi",
    "hp1G": "hugepages-1Gi",
    "eph": "ephemeral-storage",
    "cpu": "cpu",
    "mem": "memory",
}
MACHINE: Final = {
    "name": "acceptance",
    "zones": [
        {"cpus": f"{24 * zone}-{24 * zone + 23}", "memory": "48Gi", "hugepages": {"2Mi": "1Gi", "1Gi": "8Gi"}}
        for zone in (0, 1)
    ],
    "devices": {
        **{name: {"0": 8, "1": 8} for name in DEVICES},
        **{name: {str(zone): 16} for zone, name in enumerate(CELLS)},
    },
}
PODS, NODES, EVENTS = f"/api/v1/namespaces/{SPACE}/pods", "/api/v1/nodes", f"/api/v1/namespaces/{SPACE}/events"
REPORTS: Final = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
WORKLOADS: Final = {
    kind: f"/apis/{group}/v1/namespaces/{SPACE}/{kind.lower()}s"
    for kind, group in {"Deployment": "apps", "ReplicaSet": "apps", "DaemonSet": "apps", "Job": "batch"}.items()
}
APP: Final = "app"
GRACE: Final = 1
"""Seconds. A pod that is deleted with 0 may still run, so its resources would stay charged for a while."""
IN_BACKGROUND: Final = {"propagationPolicy": "Background"}


def amounts(words: str) -> dict[str, str]:
    """The resources of "4/8Gi dev1:2"; an amount of 0 is left out."""
    found: dict[str, str] = {}
    for word in words.split():
        if "/" in word:
            found["cpu"], found["memory"] = word.split("/")
        else:
            name, _, amount = word.partition(":")
            found[SHORT[name]] = amount
    return {name: amount for name, amount in found.items() if quantity.parse(amount).milli}


def numbers(found: Mapping[str, str]) -> dict[str, int]:
    """In thousandths."""
    return {name: quantity.parse(amount).milli for name, amount in found.items()}


def container(name: str, words: str, qos: QoS = "guaranteed") -> Tree:
    """Devices and hugepages have limits in every QoS class; CPU and memory only in a Guaranteed one."""
    wanted = amounts(words)
    if qos == "guaranteed":
        resources = {"limits": wanted, "requests": wanted}
    else:
        limits = {each: amount for each, amount in wanted.items() if "/" in each or each.startswith("hugepages")}
        resources = {"limits": limits, "requests": wanted}
    return {"name": name, "image": "a", "resources": resources}


def spec(*containers: str, qos: QoS = "guaranteed", init: Sequence[str] = (), **more: Any) -> Tree:
    """The spec of a pod with these containers; `more` goes into it."""
    return {
        "containers": [container(f"main-{number}", words, qos) for number, words in enumerate(containers)],
        "initContainers": [container(f"init-{number}", words, qos) for number, words in enumerate(init)],
        "terminationGracePeriodSeconds": GRACE,
        **more,
    }


def ends(*containers: str) -> dict[str, str]:
    """Annotations of a pod of which all init containers ("init"), all others ("main") or both end at once."""
    embedded = {f"numalign.io/{'run' if each == 'main' else 'init'}-seconds": "0.1" for each in containers}
    names = [f"{each}-{number}" for each in containers for number in range(4)]
    return {**embedded, "numalign.io/lab-seconds": ",".join(f"{each}=0.1" for each in names)}


class Pool(Struct, frozen=True):
    """The nodes of a scope: the one that a scenario is about, and the others."""

    target: str
    others: tuple[str, ...]

    @property
    def every(self) -> tuple[str, ...]:
        return (self.target, *self.others)


class Site:
    def __init__(self, setting: Setting, kubeconfig: Path, toggle: Callable[[bool], None]) -> None:
        """`toggle` stops or starts the scheduler of the setting."""
        self.setting, self.toggle = setting, toggle
        self.scheduler = OWN if setting == "second" else DEFAULT
        tree = json.loads(kubeconfig.read_bytes())
        address = urlsplit(tree["clusters"][0]["cluster"]["server"]).netloc
        authority = b64decode(tree["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        self._connection = http.client.HTTPSConnection(
            address, timeout=30, context=ssl.create_default_context(cadata=authority)
        )
        self._token = tree["users"][0]["user"]["token"]
        self._made: list[str] = []
        """Paths of objects beside pods and workloads that a scenario created."""
        self.initial = {name: self.free(name) for name in self.nodes()}

    def close(self) -> None:
        self._connection.close()

    def call(self, verb: str, path: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media, "Accept": "application/json"}
        self._connection.request(verb, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def get(self, path: str) -> Any:
        code, found = self.call("GET", path)
        assert code == 200, found
        return found

    def items(self, path: str) -> list[Tree]:
        found: list[Tree] = self.get(path)["items"]
        return found

    def post(self, path: str, tree: Tree) -> Tree:
        code, made = self.call("POST", path, tree)
        assert code == 201, made
        if not path.startswith((PODS, *WORKLOADS.values())):
            self._made.append(f"{path}/{made['metadata']['name']}")
        found: Tree = made
        return found

    def patch(self, path: str, change: Tree) -> None:
        code, found = self.call("PATCH", path, change, "application/merge-patch+json")
        assert code == 200, found

    def until(self, found: Callable[[], Any], otherwise: Callable[[], object]) -> Any:
        """What `found` returns once it is true. `otherwise` says what is there instead."""
        until = time.monotonic() + PATIENCE
        while not (answer := found()):
            assert time.monotonic() < until, otherwise()
            time.sleep(LOOK)
        return answer

    # Nodes and their reports

    def nodes(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.items(NODES)]

    def pool(self, scope: Scope) -> Pool:
        """The target is the last node: ties of equal nodes often go to the first."""
        found = [each for each in self.nodes() if each.startswith(scope)]
        return Pool(found[-1], tuple(found[:-1]))

    def free(self, node: str) -> dict[int, dict[str, int]]:
        """What the node reports as available, by zone, in thousandths."""
        zones = self.get(f"{REPORTS}/{node}")["zones"]
        return {
            int(zone["name"].rpartition("-")[2]): numbers(
                {each["name"]: each["available"] for each in zone["resources"]}
            )
            for zone in zones
            if zone["type"] == "Node"
        }

    def reports(self, node: str, expected: Mapping[int, Mapping[str, int]]) -> None:
        """Wait until the node reports these amounts, and no others for the resources that are named."""

        def agrees() -> bool:
            free = self.free(node)
            return all(
                free[zone].get(name, 0) == value for zone, each in expected.items() for name, value in each.items()
            )

        self.until(agrees, lambda: (node, "reports", self.free(node), "and not", expected))

    def reports_as_at_first(self, *nodes: str) -> None:
        for name in nodes or self.initial:
            self.reports(name, self.initial[name])

    def consumed(self, node: str, words: Iterable[str], before: Mapping[int, Mapping[str, int]]) -> None:
        """Wait until the node's zones together have less, by what these containers request."""
        wanted: dict[str, int] = {}
        for each in words:
            for name, value in numbers(amounts(each)).items():
                if name != SHORT["eph"]:
                    wanted[name] = wanted.get(name, 0) + value

        def agrees() -> bool:
            free = self.free(node)
            return all(
                sum(zone[name] for zone in before.values()) - sum(zone.get(name, 0) for zone in free.values()) == value
                for name, value in wanted.items()
            )

        self.until(agrees, lambda: (node, before, self.free(node), wanted))

    def pad(self, node: str, *zones: str) -> None:
        """Leave these amounts free in zones 0, 1, ...; other resources stay free."""
        before, expected = self.free(node), {}
        for zone, words in enumerate(zones):
            left = numbers(
                {SHORT[word.partition(":")[0]]: "0" for word in words.split() if ":" in word} | amounts(words)
            )
            taken = {name: before[zone][name] - value for name, value in left.items()}
            assert min(taken.values()) >= 0, (node, zone, words, before[zone])
            self._hold(node, zone, {name: value for name, value in taken.items() if value})
            expected[zone] = left
        self.reports(node, expected)

    def _hold(self, node: str, zone: int, taken: Mapping[str, int]) -> None:
        """One pod holds these amounts in the zone. It is Guaranteed, so that CPU and memory are exclusive."""
        limits = {name: str(quantity.of_milli(value)) for name, value in taken.items()} | {CELLS[zone]: "1"}
        assert ("cpu" in limits) == ("memory" in limits), (node, zone, taken)
        holder = {"name": "pad", "image": "a", "resources": {"limits": limits, "requests": limits}}
        name = f"pad-{node}-{zone}-{next(self._numbers)}"
        inner = {"containers": [holder], "nodeName": node, "tolerations": [{"operator": "Exists"}]}
        meta = {"name": name, "labels": {APP: "pad"}}
        self.post(PODS, {"metadata": meta, "spec": inner | {"terminationGracePeriodSeconds": GRACE}})
        self.runs(name, node)

    _numbers = itertools.count()

    # Pods and workloads

    def pod(self, name: str, inner: Tree, scope: Scope | None = None, **meta: Any) -> str:
        """Create a pod for the scheduler of the setting, on nodes of the scope; its name."""
        self.post(PODS, {"metadata": {"name": name, **meta}, "spec": self._bound_for(inner, scope)})
        return name

    def _bound_for(self, inner: Tree, scope: Scope | None) -> Tree:
        selector = {"nodeSelector": {SCOPE_LABEL: scope} | inner.get("nodeSelector", {})} if scope else {}
        return {"schedulerName": self.scheduler, **inner, **selector}

    def workload(self, kind: str, name: str, inner: Tree, scope: Scope, replicas: int = 1, **more: Any) -> str:
        labels = {APP: name}
        template: Tree = {"metadata": {"labels": labels}, "spec": self._bound_for(inner, scope)}
        body: Tree = {"selector": {"matchLabels": labels}, "template": template, **more}
        if kind != "DaemonSet":
            body["replicas"] = replicas
        self.post(WORKLOADS[kind], {"metadata": {"name": name}, "spec": body})
        return name

    def change(self, kind: str, name: str, change: Tree) -> None:
        self.patch(f"{WORKLOADS[kind]}/{name}", change)

    def roll_out(self, name: str, *containers: str) -> None:
        """Give the pods of a Deployment these containers, and wait until only new pods are there."""
        template = {"spec": {"containers": spec(*containers)["containers"]}}
        self.change("Deployment", name, {"spec": {"template": template}})

        def is_done() -> bool:
            tree = self.get(f"{WORKLOADS['Deployment']}/{name}")
            status, wanted = tree.get("status", {}), tree["spec"]["replicas"]
            counts = [status.get(each, 0) for each in ("replicas", "updatedReplicas", "readyReplicas")]
            return status.get("observedGeneration") == tree["metadata"]["generation"] and counts == [wanted] * 3

        self.until(is_done, lambda: [(each["metadata"]["name"], each["status"]) for each in self.pods_of(name)])

    def pods_of(self, app: str) -> list[Tree]:
        return self.items(f"{PODS}?labelSelector={APP}%3D{app}")

    def get_pod(self, name: str) -> Tree:
        found: Tree = self.get(f"{PODS}/{name}")
        return found

    def runs(self, name: str, *nodes: str) -> str:
        """Wait until the pod runs, on one of these nodes if any is given; the node."""

        def running() -> str:
            tree = self.get_pod(name)
            assert tree["status"].get("phase") != "Failed", tree["status"]
            node: str = tree["spec"].get("nodeName", "")
            assert not (node and nodes) or node in nodes, f"{name} is on {node}, not on {nodes}"
            return node if tree["status"].get("phase") == "Running" else ""

        node: str = self.until(running, lambda: (name, self.get_pod(name)["status"]))
        return node

    def all_run(self, app: str, count: int) -> list[str]:
        """Wait until this many pods of a workload run, and none else is left; their nodes."""

        def running() -> list[Tree]:
            pods = [each for each in self.pods_of(app) if "deletionTimestamp" not in each["metadata"]]
            assert not any(each["status"].get("phase") == "Failed" for each in pods), [each["status"] for each in pods]
            ready = [each for each in pods if each["status"].get("phase") == "Running"]
            return ready if len(ready) == count == len(self.pods_of(app)) else []

        found = self.until(running, lambda: [(each["metadata"]["name"], each["status"]) for each in self.pods_of(app)])
        return [each["spec"]["nodeName"] for each in found]

    def waits(self, name: str, *texts: str) -> str:
        """Wait until the scheduler has said why the pod waits, with one of these texts; the message."""

        def refused() -> str:
            tree = self.get_pod(name)
            assert not tree["spec"].get("nodeName"), f"{name} is on {tree['spec']['nodeName']}"
            message = self.unschedulable(tree)
            return message if any(text in message for text in texts) else ""

        message: str = self.until(refused, lambda: (name, self.get_pod(name)["status"], texts))
        return message

    @staticmethod
    def unschedulable(tree: Tree) -> str:
        """The message of the condition, empty without one."""
        for each in tree["status"].get("conditions", ()):
            if each["type"] == "PodScheduled" and each["status"] == "False" and each.get("reason") == "Unschedulable":
                return str(each.get("message", ""))
        return ""

    def reporter(self, name: str, reason: Literal["Scheduled", "FailedScheduling"]) -> str:
        """The scheduler that wrote such an Event about the pod."""

        def reporters() -> list[str]:
            events = self.items(f"{EVENTS}?fieldSelector=reason%3D{reason}")
            mine = (each for each in events if _about(each) == name)
            return [each.get("reportingComponent") or each.get("source", {}).get("component", "") for each in mine]

        found: list[str] = self.until(reporters, lambda: f"no event {reason} of {name}")
        return found[0]

    def delete(self, name: str) -> None:
        code, found = self.call("DELETE", f"{PODS}/{name}", IN_BACKGROUND)
        assert code in (200, 202, 404), found

    def delete_workload(self, kind: str, name: str) -> None:
        code, found = self.call("DELETE", f"{WORKLOADS[kind]}/{name}", IN_BACKGROUND)
        assert code in (200, 202, 404), found

    # Around a scenario

    @contextlib.contextmanager
    def without_scheduler(self) -> Iterator[None]:
        self.toggle(False)
        try:
            yield
        finally:
            self.toggle(True)

    def clear(self) -> None:
        """Remove everything that a scenario created, and wait until every zone is as free as at first."""
        for kind, path in WORKLOADS.items():
            for each in self.items(path):
                self.delete_workload(kind, each["metadata"]["name"])
        for path in reversed(self._made):
            self.call("DELETE", path)
        self._made.clear()

        def gone() -> bool:
            pods = self.items(PODS)
            for each in pods:
                self.delete(each["metadata"]["name"])
            return not pods

        self.until(gone, lambda: [each["metadata"]["name"] for each in self.items(PODS)])
        self.reports_as_at_first()


def _about(event: Tree) -> str:
    return str((event.get("involvedObject") or event.get("regarding") or {}).get("name", ""))

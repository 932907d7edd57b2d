"""The NodeResourceTopology object of each publisher, and how the publisher writes it.

`exporter` calls it. `kubelet.report` and `kubelet.plainreport` compute the amounts, `agent.publish.forms` the object.
RTE and NFD list resources in random order, so each of their writes is a change (exporter spec, D-09). Our agent applies
its object. RTE patches the object that it remembers, with a full update after ten patches and after a failed patch
(exporter spec 4.10). NFD applies, with its namespace as owner, and exits if the API server rejects the object (exporter
spec 5.7).

`garbled` makes impossible reports that the schema accepts. Each has been observed, or follows from a known defect
(exporter spec 12). Readers must not fail on them."""

import random
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from numalign.agent.inventory.inventory import Mode
from numalign.agent.publish import forms
from numalign.api.attributes.directmode import FEATURES, DirectMode
from numalign.api.decode import structs
from numalign.api.nrt import publishers, wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet.report import directreport, plainreport, report
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NAMESPACES
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.nodes.publisher.crd import RESOURCE
from numalign.simulator.nodes.specs import PublisherKind
from numalign.simulator.trees import Tree

UPDATE: Final = publishers.RTE_UPDATE
MODES: Final[Mapping[PublisherKind, Mode]] = {"agent": "own", "rte": "rte", "nfd": "nfd"}


def seen(node_state: NodeState, publisher: PublisherKind) -> NodeTopology:
    """The report that the publisher computes from the node's current state."""
    node_type, runtime = node_state.node_type, node_state.direct
    if runtime is not None and publisher == "agent":
        kubelet = node_state.kubelet
        mode = DirectMode(frozenset(FEATURES))
        plain = _seen(node_state, publisher)
        return directreport.advertised(
            plain, kubelet.machine, kubelet.settings, mode, runtime.applied, node_state.spec.shared_devices
        )
    if node_state.state is not node_type.empty:
        return _seen(node_state, publisher)
    if publisher not in node_type.reports:
        node_type.reports[publisher] = _seen(node_state, publisher)
    return msgspec.structs.replace(node_type.reports[publisher], node=node_state.name)


def _seen(node_state: NodeState, publisher: PublisherKind) -> NodeTopology:
    if publisher == "rte" or publisher == "nfd":
        return plainreport.of(node_state.name, node_state.kubelet, node_state.state, publisher)
    return report.of(node_state.name, node_state.kubelet, node_state.state)


def body(topology: NodeTopology, publisher: PublisherKind, chances: random.Random) -> Tree:
    """The object without an owner reference."""
    tree = trees.decoded(structs.ENCODER.encode(forms.document(topology, MODES[publisher])))
    if publisher != "agent":
        _shuffle(tree, chances)
    if publisher == "nfd":
        chances.shuffle(tree["zones"])
    return tree


def with_owner(tree: Tree, owner: Tree) -> Tree:
    return tree | {"metadata": tree["metadata"] | {"ownerReferences": [owner]}}


def without(tree: Tree, attributes: tuple[str, ...]) -> Tree:
    kept = [each for each in tree.get("attributes") or () if each["name"] not in attributes]
    return tree | {"attributes": kept}


def _shuffle(tree: Tree, chances: random.Random) -> None:
    for zone in tree["zones"]:
        if zone["type"] == wire.NUMA_ZONE and "resources" in zone:
            chances.shuffle(zone["resources"])


NFD_NAMESPACE: Final = "node-feature-discovery"
PATCHES_BEFORE_UPDATE: Final = 10


class ReportWriter:
    """The memory of one publisher process about its writes."""

    __slots__ = ("_api", "_dialect", "_node", "_owner", "_patches")

    def __init__(self, api: Api, publisher: PublisherKind, node: str) -> None:
        self._api = api
        self._dialect = publisher
        self._node = node
        self._patches: int | None = None
        """Patches since the last full write; None if no object is remembered."""
        self._owner: Tree | None = None

    def write(self, tree: Tree, node_uid: str) -> None:
        """Writes the object. Raises StatusError if the API server rejects it."""
        if self._dialect == "nfd":
            owner = self._namespace()
            self._apply(tree if owner is None else with_owner(tree, owner), publishers.NFD)
            return
        owned = with_owner(tree, _reference("Node", self._node, node_uid))
        if self._dialect == "rte":
            self._patch_or_update(owned)
        else:
            self._apply(owned, publishers.AGENT)

    def is_there(self) -> bool:
        try:
            self._api.get(RESOURCE, self._node)
        except StatusError:
            return False
        return True

    def _apply(self, tree: Tree, manager: str) -> None:
        self._api.patch(RESOURCE, self._node, "", Patch("apply", tree), manager=manager, force=True)

    def _patch_or_update(self, tree: Tree) -> None:
        if self._patches is not None and self._patches < PATCHES_BEFORE_UPDATE:
            try:
                self._api.patch(RESOURCE, self._node, "", Patch("merge", tree), manager=publishers.RTE)
            except StatusError:
                self._patches = None
            else:
                self._patches += 1
                return
        self._update(tree)
        self._patches = 0

    def _update(self, tree: Tree) -> None:
        try:
            there = self._api.get(RESOURCE, self._node)
        except StatusError:
            self._api.create(RESOURCE, tree, manager=publishers.RTE)
            return
        annotations = (there["metadata"].get("annotations") or {}) | (tree["metadata"].get("annotations") or {})
        metadata = there["metadata"] | tree["metadata"] | {"annotations": annotations}
        self._api.update(RESOURCE, there | tree | {"metadata": metadata}, manager=publishers.RTE)

    def _namespace(self) -> Tree | None:
        if self._owner is None:
            try:
                found = self._api.get(NAMESPACES, NFD_NAMESPACE)
            except StatusError:
                return None
            self._owner = _reference("Namespace", NFD_NAMESPACE, found["metadata"]["uid"])
        return self._owner


def _reference(kind: str, name: str, uid: str) -> Tree:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}


def garbled(tree: Tree, chances: random.Random) -> Tree:
    """A copy of the report with one impossible change."""
    spoilt = trees.copied(tree)
    chances.choice(WAYS)(spoilt)
    return spoilt


def _negative(tree: Tree) -> None:
    for each in _resources(tree):
        each["available"] = "-1"


def _more_than_there_is(tree: Tree) -> None:
    for each in _resources(tree):
        each["available"] = "9223372036854775807"


def _strange_names(tree: Tree) -> None:
    for zone in tree["zones"]:
        zone["name"] = zone["name"].replace("-", "_")


def _twice(tree: Tree) -> None:
    tree["zones"] = tree["zones"] + tree["zones"]


def _no_zones(tree: Tree) -> None:
    tree["zones"] = []


def _unreadable_attributes(tree: Tree) -> None:
    tree["attributes"] = [each | {"value": "\u2620 0,,-"} for each in tree.get("attributes") or ()]


def _resources(tree: Tree) -> list[Tree]:
    return [each for zone in tree["zones"] for each in zone.get("resources") or ()]


WAYS: Final[tuple[Callable[[Tree], None], ...]] = (
    _negative,
    _more_than_there_is,
    _strange_names,
    _twice,
    _no_zones,
    _unreadable_attributes,
)

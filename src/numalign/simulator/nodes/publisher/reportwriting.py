"""How publishers put a report into the API server: each with the verbs of the real one.

Our agent applies its object. RTE patches what it remembers, with a full update every ten patches and whenever a patch
fails (exporter spec 4.10). NFD applies too, owned by its namespace, and dies of a refusal (exporter spec 5.7)."""

from __future__ import annotations

from typing import Final

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NAMESPACES
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.nodes.publisher import reports
from numalign.simulator.nodes.publisher.crd import RESOURCE
from numalign.simulator.nodes.specs import Dialect
from numalign.simulator.trees import Tree

AGENT: Final = "numalign-agent"
NFD: Final = "node-feature-discovery-topology-updater"
NFD_NAMESPACE: Final = "node-feature-discovery"
RTE: Final = "resource-topology-exporter"
PATCHES_BEFORE_UPDATE: Final = 10


class ReportWriter:
    """What one publisher process remembers of what it wrote."""

    __slots__ = ("_api", "_dialect", "_node", "_owner", "_patches")

    def __init__(self, api: Api, dialect: Dialect, node: str) -> None:
        self._api = api
        self._dialect = dialect
        self._node = node
        self._patches: int | None = None
        """Since the last full write; None: nothing is remembered."""
        self._owner: Tree | None = None

    def write(self, tree: Tree, node_uid: str) -> None:
        """StatusError where the server does not take it."""
        if self._dialect == "nfd":
            owner = self._namespace()
            self._apply(tree if owner is None else reports.owned(tree, owner), NFD)
            return
        owned = reports.owned(tree, _reference("Node", self._node, node_uid))
        if self._dialect == "rte":
            self._patch_or_update(owned)
        else:
            self._apply(owned, AGENT)

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
                self._api.patch(RESOURCE, self._node, "", Patch("merge", tree), manager=RTE)
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
            self._api.create(RESOURCE, tree, manager=RTE)
            return
        annotations = (there["metadata"].get("annotations") or {}) | (tree["metadata"].get("annotations") or {})
        metadata = there["metadata"] | tree["metadata"] | {"annotations": annotations}
        self._api.update(RESOURCE, there | tree | {"metadata": metadata}, manager=RTE)

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

"""A node's topology report as the object that its publisher writes: ours, RTE's or NFD's.

`exporter` asks for it whenever a publisher looks at its node. The numbers are `kubelet.report`'s and
`kubelet.plainreport`'s, the forms are `agent.forms`'s.
RTE and NFD list resources in random order, so that every write of theirs is a change (exporter spec, D-09)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

import msgspec

from numalign.agent.inventory.inventory import Mode
from numalign.agent.publish import forms, published
from numalign.api.decode import structs
from numalign.api.nrt import wire as nrtwire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet import plainreport, report
from numalign.simulator import trees
from numalign.simulator.nodes.nodestate import Standing
from numalign.simulator.nodes.specs import Dialect
from numalign.simulator.trees import Tree

UPDATE: Final = published.RTE_UPDATE
MODES: Final[Mapping[Dialect, Mode]] = {"agent": "own", "rte": "rte", "nfd": "nfd"}


def seen(standing: Standing, dialect: Dialect) -> NodeTopology:
    """What the publisher sees when it looks at the node now."""
    make = standing.make
    if standing.state is not make.empty:
        return _seen(standing, dialect)
    if dialect not in make.reports:
        make.reports[dialect] = _seen(standing, dialect)
    return msgspec.structs.replace(make.reports[dialect], node=standing.name)


def _seen(standing: Standing, dialect: Dialect) -> NodeTopology:
    if dialect == "rte" or dialect == "nfd":
        return plainreport.of(standing.name, standing.kubelet, standing.state, dialect)
    return report.of(standing.name, standing.kubelet, standing.state)


def body(topology: NodeTopology, dialect: Dialect, chances: random.Random) -> Tree:
    """The object without an owner."""
    tree = trees.decoded(structs.ENCODER.encode(forms.document(topology, MODES[dialect])))
    if dialect != "agent":
        _shuffle(tree, chances)
    if dialect == "nfd":
        chances.shuffle(tree["zones"])
    return tree


def owned(tree: Tree, owner: Tree) -> Tree:
    return tree | {"metadata": tree["metadata"] | {"ownerReferences": [owner]}}


def without(tree: Tree, attributes: tuple[str, ...]) -> Tree:
    kept = [each for each in tree.get("attributes") or () if each["name"] not in attributes]
    return tree | {"attributes": kept}


def _shuffle(tree: Tree, chances: random.Random) -> None:
    for zone in tree["zones"]:
        if zone["type"] == nrtwire.NUMA_ZONE and "resources" in zone:
            chances.shuffle(zone["resources"])

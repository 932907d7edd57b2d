"""NodePorts: two pods cannot use the same host port of one node. `nodestate` defines what the same port is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.rules import nodestate
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodestate import HostPort
from numalign.placement.rules.rule import FITS, Codes, Refusal, Refusals

TAKEN: Final = Refusal(("node(s) didn't have free ports for the requested pod ports",))
NOT_FREE: Final = 1


class WantedPorts(Struct, frozen=True):
    ports: tuple[HostPort, ...]
    world: ClusterState
    refusals: Refusals
    only: frozenset[str] | None = None


class NodePorts:
    name: Final = "NodePorts"

    def concerns(self, pod: Pod) -> bool:
        return bool(nodestate.wanted(pod))

    def prepare(self, pod: Pod, world: ClusterState) -> WantedPorts | None:
        ports = nodestate.wanted(pod)
        return WantedPorts(ports=ports, world=world, refusals=Refusals(TAKEN)) if ports else None

    def filter(self, prepared: WantedPorts) -> Codes:
        codes = np.zeros(prepared.world.capacity, np.int32)
        for port in prepared.ports:
            codes[prepared.world.ports.rows(port)] = NOT_FREE
        return codes

    def filter_row(self, prepared: WantedPorts, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        staying = (each.ports for uid, each in prepared.world.on_row[row].items() if uid not in removed)
        used = [port for ports in (*staying, *map(nodestate.wanted, added)) for port in ports]
        taken = any(nodestate.conflict(wish, port) for wish, port in product(prepared.ports, used))
        return NOT_FREE if taken else FITS

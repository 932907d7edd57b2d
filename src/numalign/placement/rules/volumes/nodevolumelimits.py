"""NodeVolumeLimits: a node takes no more volumes of a CSI driver than the driver says it can attach there.

Also, where a driver asks for it, nodes on which it does not run are left out (kube-scheduler spec 1.15). What is
attached where is `attachedvolumes`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import FITS, Codes, Refusal, Refusals
from numalign.placement.rules.volumes import claims, intree
from numalign.placement.rules.volumes.attachedvolumes import AttachedVolume, AttachedVolumes
from numalign.placement.rules.volumes.volumestock import VolumeStock

TOO_MANY: Final = Refusal(("node(s) exceed max volume count",))
TOO_MANY_CODE, PROBLEM_CODE = 1, 2


class PreparedLimits(Struct, frozen=True):
    world: ClusterState
    new: frozenset[AttachedVolume]
    codes: Codes
    """As far as they do not depend on what is attached: missing claims, and drivers that nodes lack."""
    refusals: Refusals
    only: None = None


class NodeVolumeLimits:
    name: Final = "NodeVolumeLimits"

    def __init__(self, stock: VolumeStock, attached: AttachedVolumes) -> None:
        self._stock, self._attached = stock, attached

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes) and claims.are_special(pod.spec.volumes)

    def prepare(self, pod: Pod, world: ClusterState) -> PreparedLimits | None:
        if not pod.spec.volumes:
            return None
        if not any(claims.of_volume(pod, each) or intree.is_built_in(each) for each in pod.spec.volumes):
            return None
        codes = np.zeros(world.capacity, np.int32)
        problem = self._problem(pod)
        if problem is not None:
            codes[:] = PROBLEM_CODE
            refusals = Refusals(TOO_MANY, Refusal((problem,), unresolvable=True))
            return PreparedLimits(world=world, new=frozenset(), codes=codes, refusals=refusals)
        new = frozenset(self._attached.of_pod(pod))
        demanding = sorted({each.driver for each in new if self._must_run(each.driver)})
        plain = {each.driver for each in self._attached.of_pod(pod, built_in=False)}
        # The first driver that is missing gives the reason.
        for place, driver in reversed(list(enumerate(demanding, start=TOO_MANY_CODE + 1))):
            codes[self._lacking(driver, world, driver in plain)] = place
        return PreparedLimits(world=world, new=new, codes=codes, refusals=Refusals(TOO_MANY, *map(_missing, demanding)))

    def filter(self, prepared: PreparedLimits) -> Codes:
        codes = prepared.codes.copy()
        for driver, count in _by_driver(prepared.new).items():
            column = self._attached.column(driver)
            full = (column.limit >= 0) & (column.attached + count > column.limit)
            for row in np.flatnonzero(full & (codes == FITS)).tolist():
                # Volumes that pods there use already are not new; few rows get this far.
                new = prepared.new - self._attached.of_pods(row)
                more = _by_driver(new).get(driver, 0)
                if more and column.attached[row] + more > column.limit[row]:
                    codes[row] = TOO_MANY_CODE
        return codes

    def filter_row(self, prepared: PreparedLimits, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        if prepared.codes[row] != FITS:
            return int(prepared.codes[row])
        there = prepared.world.on_row[row]
        pods = (*(assigned.pod for uid, assigned in there.items() if uid not in removed), *added)
        held = frozenset(each for pod in pods for each in self._attached.of_pod(pod))
        attached = _by_driver(held | self._attached.attachments(prepared.world.names[row]))
        for driver, count in _by_driver(prepared.new - held).items():
            limit = int(self._attached.column(driver).limit[row])
            if 0 <= limit < attached[driver] + count:
                return TOO_MANY_CODE
        return FITS

    def _problem(self, pod: Pod) -> str | None:
        for name in claims.named(pod):
            if not name.name:
                return "PersistentVolumeClaim had no name"
            claim = self._stock.claims.known(name.full)
            if claim is None:
                return f"looking up PVC {name.namespace}/{name.name}: {claims.not_found(name.name)}"
            if name.is_ephemeral and not claims.is_for(claim, pod):
                return claims.not_owned(name, pod)
        return None

    def _must_run(self, driver: str) -> bool:
        known = self._stock.drivers.known(driver)
        return known is not None and known.spec.prevent_pod_scheduling_if_missing

    def _lacking(self, driver: str, world: ClusterState, without_node: bool) -> list[int]:
        """Rows whose node lacks the driver. A node that has no drivers at all does not count if the pod's volumes are
        all of a built-in plugin: there they are not taken for the driver's."""
        rows = []
        for name, row in world.rows.items():
            node = self._stock.nodes.known(name)
            has = not without_node if node is None else any(each.name == driver for each in node.spec.drivers)
            if not has:
                rows.append(row)
        return rows


def _missing(driver: str) -> Refusal:
    return Refusal((f"{driver} CSI driver is not installed on the node",))


def _by_driver(volumes: Iterable[AttachedVolume]) -> Counter[str]:
    return Counter(each.driver for each in volumes)

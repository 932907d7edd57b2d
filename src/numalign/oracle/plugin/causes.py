"""Finds why a history ends differently in numalign than in v0.34.7: which behaviours and which cache defects show in
it.

`judge` calls it where the two differ. The changes from v0.34.7 to numalign are applied one after the other; a change
that alters an answer is a cause. What a history must contain for a change to show is a rule on the input only. It is
necessary, not sufficient: changes without their occasion are applied first and must alter nothing."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from numalign.api.nrt import fingerprint, normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod
from numalign.oracle.plugin import replay
from numalign.oracle.plugin.replay import Dialect, OldBehaviour, PreparedHistory
from numalign.placement import referenceargs
from numalign.placement.reference.caches import podgroups, selection
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.referenceargs import ForeignPodsDetect, ResyncMethod

Change = Repair | OldBehaviour
Occasion = Callable[[PreparedHistory], bool]


def given(change: Change, old: PreparedHistory, new: PreparedHistory) -> bool:
    if change is OldBehaviour.OLD_CLASSES:
        return old is not new
    return isinstance(selection.build(new.settings, ()), OverReserve) and OF_CACHE[change](new)


def _has(op: str) -> Occasion:
    return lambda script: any(step.op == op for step in script.history.steps)


def _pods(script: PreparedHistory) -> Iterator[Pod]:
    yield from script.history.pods
    yield from (step.pod for step in script.history.steps if step.op in ("pod_add", "pod_update"))


def _reports(script: PreparedHistory) -> Iterator[NodeResourceTopology]:
    yield from script.history.nrts
    yield from (step.nrt for step in script.history.steps if step.op == "nrt_update")


def _has_late_report(script: PreparedHistory) -> bool:
    known = {report.metadata.name for report in script.history.nrts}
    return any(report.metadata.name not in known for report in _reports(script))


def _has_ended_pod(script: PreparedHistory) -> bool:
    return any(podgroups.has_ended(pod) for pod in _pods(script))


def _has_starting_pod(script: PreparedHistory) -> bool:
    return any(pod.status.phase != podgroups.RUNNING and not podgroups.has_ended(pod) for pod in _pods(script))


def _signs_exclusive(script: PreparedHistory) -> bool:
    """Whether a fingerprint may cover exclusive pods only."""
    method = referenceargs.resync_method(script.settings.cache)
    announced = (
        each.name == normalise.FINGERPRINT_METHOD and each.value == fingerprint.Method.EXCLUSIVE
        for report in _reports(script)
        for each in report.attributes
    )
    return method is ResyncMethod.ONLY_EXCLUSIVE or (method is ResyncMethod.AUTODETECT and any(announced))


def _looks_for_exclusive(script: PreparedHistory) -> bool:
    detect = referenceargs.foreign_pods_detect(script.settings.cache)
    return detect is ForeignPodsDetect.ONLY_EXCLUSIVE or _signs_exclusive(script)


def _has_devices(script: PreparedHistory) -> bool:
    wanted = (each.resources.requests for pod in _pods(script) for each in pod.in_admission_order())
    return _looks_for_exclusive(script) and not all(resourcenames.is_native(name) for each in wanted for name in each)


def _has_init_containers(script: PreparedHistory) -> bool:
    ordinary = (not each.is_sidecar for pod in _pods(script) for each in pod.spec.init_containers)
    return _looks_for_exclusive(script) and any(ordinary)


def _never(_: PreparedHistory) -> bool:
    """A resync round is one step, so no event can occur during it."""
    return False


OF_CACHE: Final[Mapping[Change, Occasion]] = {
    Repair.LATE_REPORT: _has_late_report,
    Repair.REPORT_GONE: _has("nrt_delete"),
    Repair.MISSED_SETTINGS: _has("nrt_delete"),
    Repair.EMPTY_NODE: _has("resync"),
    Repair.ENDED_PODS: _has_ended_pod,
    Repair.STARTING_PODS: _has_starting_pod,
    Repair.PINNED_PODS: _signs_exclusive,
    Repair.UNREPORTED_POD: _has("reserve"),
    Repair.RESYNC_WINDOW: _never,
    OldBehaviour.EVERY_DEVICE: _has_devices,
    OldBehaviour.INIT_CONTAINERS: _has_init_containers,
    OldBehaviour.RESERVE_UNMARKS: _has("reserve"),
}


ENTRIES: Final[Mapping[Change, str]] = {
    **{repair: f"cache-{repair}" for repair in Repair},
    OldBehaviour.EVERY_DEVICE: "difference 3",
    OldBehaviour.INIT_CONTAINERS: "difference 4",
    OldBehaviour.RESERVE_UNMARKS: "difference 5",
    OldBehaviour.OLD_CLASSES: "difference 7",
}
"""Entries of docs/compatibility/plugin-caches.md and docs/develop/oracle-reference.md. Defects of Filter and Score have
their own rules."""


class Cause(Struct, frozen=True):
    entry: str
    possible: bool


def of(old: PreparedHistory, new: PreparedHistory) -> Iterator[Cause]:
    """The causes. `old` and `new` are the same history with QoS classes as v0.34.7 and as numalign computes them."""
    possible = {change: given(change, old, new) for change in ENTRIES}
    left_out = [change for change in possible if not possible[change]]
    dialect = without(replay.V0_34_7, left_out)
    before, after = (_said(old, new, each) for each in (replay.V0_34_7, dialect))
    if before != after:
        yield Cause(", ".join(ENTRIES[change] for change in left_out), possible=False)
    for change in filter(possible.__getitem__, possible):
        dialect, before = without(dialect, [change]), after
        after = _said(old, new, dialect)
        if before != after:
            yield Cause(ENTRIES[change], possible=True)


def without(dialect: Dialect, changes: Collection[Change]) -> Dialect:
    """The dialect without these behaviours, and with these repairs."""
    repaired = [change for change in changes if isinstance(change, Repair)]
    return Dialect(dialect.behaviours.difference(changes), dialect.repairs.union(repaired))


def _said(old: PreparedHistory, new: PreparedHistory, dialect: Dialect) -> list[Any]:
    prepared = old if OldBehaviour.OLD_CLASSES in dialect.behaviours else new
    return [answer.said for answer in replay.play(prepared, dialect)]

"""What a history must contain for a behaviour of v0.34.7, or a defect of its cache, to show.

`causes` calls it. The rules look at the input only. They are necessary, not sufficient: a cause without its occasion
means that a repair does more than its entry says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from numalign.api.nrt import fingerprint, normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod
from numalign.oracle.plugin.dialect import Habit
from numalign.oracle.plugin.playing import Script
from numalign.placement.reference import args
from numalign.placement.reference.args import ForeignPodsDetect, ResyncMethod
from numalign.placement.reference.caches import podgroups, selection
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.repairs import Repair

Change = Repair | Habit
Occasion = Callable[[Script], bool]


def given(change: Change, old: Script, new: Script) -> bool:
    if change is Habit.OLD_CLASSES:
        return old is not new
    return isinstance(selection.build(new.settings, ()), OverReserve) and OF_CACHE[change](new)


def _has(op: str) -> Occasion:
    return lambda script: any(step.op == op for step in script.history.steps)


def _pods(script: Script) -> Iterator[Pod]:
    yield from script.history.pods
    yield from (step.pod for step in script.history.steps if step.op in ("pod_add", "pod_update"))


def _reports(script: Script) -> Iterator[NodeResourceTopology]:
    yield from script.history.nrts
    yield from (step.nrt for step in script.history.steps if step.op == "nrt_update")


def _has_late_report(script: Script) -> bool:
    known = {report.metadata.name for report in script.history.nrts}
    return any(report.metadata.name not in known for report in _reports(script))


def _has_ended_pod(script: Script) -> bool:
    return any(podgroups.has_ended(pod) for pod in _pods(script))


def _has_starting_pod(script: Script) -> bool:
    return any(pod.status.phase != podgroups.RUNNING and not podgroups.has_ended(pod) for pod in _pods(script))


def _signs_exclusive(script: Script) -> bool:
    """Whether a fingerprint may cover exclusive pods only."""
    method = args.resync_method(script.settings.cache)
    announced = (
        each.name == normalise.FINGERPRINT_METHOD and each.value == fingerprint.Method.EXCLUSIVE
        for report in _reports(script)
        for each in report.attributes
    )
    return method is ResyncMethod.ONLY_EXCLUSIVE or (method is ResyncMethod.AUTODETECT and any(announced))


def _looks_for_exclusive(script: Script) -> bool:
    detect = args.foreign_pods_detect(script.settings.cache)
    return detect is ForeignPodsDetect.ONLY_EXCLUSIVE or _signs_exclusive(script)


def _has_devices(script: Script) -> bool:
    wanted = (each.resources.requests for pod in _pods(script) for each in pod.in_admission_order())
    return _looks_for_exclusive(script) and not all(resourcenames.is_native(name) for each in wanted for name in each)


def _has_init_containers(script: Script) -> bool:
    ordinary = (not each.is_sidecar for pod in _pods(script) for each in pod.spec.init_containers)
    return _looks_for_exclusive(script) and any(ordinary)


def _never(_: Script) -> bool:
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
    Habit.EVERY_DEVICE: _has_devices,
    Habit.INIT_CONTAINERS: _has_init_containers,
    Habit.RESERVE_UNMARKS: _has("reserve"),
}

"""Admits pods one after the other on a kubelet model, reports the outcomes, and draws each as a block of text.

`kubelet` and `demo` call `admit_all` with a kubelet and pods in order. The model decides, and `placement.explain` says
why a pod is refused. No container starts in between: each pod meets what the pods before it hold, as in a burst that
reaches a kubelet at once. The kubelet's reason and message are printed as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from numalign.api.decode import cpuset
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Pod
from numalign.cli import output
from numalign.cli.display import formats, matrix, values
from numalign.cli.display.formats import INDENT, Page
from numalign.cli.display.values import AdmittedContainer, AdmittedPod, Explanation, Offered
from numalign.kubelet import admission, predicates, versions
from numalign.kubelet.admission import Outcome
from numalign.kubelet.report import zonetable
from numalign.kubelet.report.zonetable import Cell
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, KubeletState
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import HintList
from numalign.kubelet.topologymanager.mask import Mask
from numalign.kubelet.topologymanager.merge import Hints
from numalign.placement.explain import answers, wording

NO_NAMES: Mapping[str, str] = {}
MOST_HINTS = 64


class Admission(Struct, frozen=True):
    """One pod's admission. `before`: the state that the pod meets, without leftovers of refused pods."""

    kubelet: Kubelet
    pod: Pod
    before: KubeletState
    outcome: Outcome


def admit_all(kubelet: Kubelet, pods: Iterable[tuple[Pod, str]]) -> values.AdmitReport:
    """Admit pods on an empty node, in order. Each comes with the place that it was read from."""
    state = kubelet.initial()
    reported = []
    for pod, source in pods:
        before = admission.collect(kubelet, state)
        state, outcome = admission.admit(kubelet, before, pod)
        reported.append(_pod(Admission(kubelet, pod, before, outcome), source))
    return values.AdmitReport(
        machine=kubelet.machine.name,
        kubelet=_kubelet(kubelet),
        pods=tuple(reported),
        resources=resources(kubelet, admission.collect(kubelet, state)),
    )


def _kubelet(kubelet: Kubelet) -> values.KubeletSettings:
    settings = kubelet.settings
    return values.KubeletSettings(
        version=str(versions.clamped(settings.minor)),
        topology_manager_policy=settings.topology_policy,
        topology_manager_scope=settings.topology_scope,
        cpu_manager_policy=settings.cpu_policy,
        memory_manager_policy=settings.memory_policy,
    )


def _pod(admitted: Admission, source: str) -> values.AdmittedPod:
    pod, outcome = admitted.pod, admitted.outcome
    return values.AdmittedPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        source=source,
        qos_class=qos.of(pod),
        requests=values.requested(requests.effective(pod)),
        verdict=outcome.verdict,
        reason=outcome.reason,
        message=outcome.message,
        container=outcome.container,
        steps=outcome.steps,
        notes=tuple(_notes(admitted)),
        containers=tuple(_container(admitted.kubelet, *placed) for placed in outcome.placement.items()),
        explanation=_explanation(admitted) if outcome.verdict == "rejected" else None,
    )


def _explanation(admitted: Admission) -> values.Explanation:
    outcome = admitted.outcome
    reason = answers.of_kubelet(admitted.kubelet, admitted.before, admitted.pod)
    asked = values.requested(requests.effective(admitted.pod))
    totals = zonetable.of(admitted.kubelet, admitted.before).totals
    free = {name: values.total(name, totals[name].free) for name in asked if name in totals}
    return values.Explanation(
        container=reason.container if reason is not None else outcome.container,
        cause=reason.cause if reason is not None else "",
        text=wording.sentence_with_zones(reason) if reason is not None else "",
        never=reason is not None and reason.structural,
        node_has_room=all(asked[name] <= free[name] for name in free),
        node_free=free,
        lacks=tuple(map(values.lacking, reason.lacks)) if reason is not None else (),
        offered=_offered(outcome),
    )


def _offered(outcome: Outcome) -> tuple[values.Offered, ...]:
    """The hints of the alignment at which the pod was refused."""
    last = outcome.alignments[-1] if outcome.alignments else None
    if last is None or last.hint is not None:
        return ()
    return tuple(
        values.Offered(resource=name, hints=_hints(hints), count=hints.count if hints is not None else 0)
        for name, hints in last.offered.items()
    )


def _hints(hints: Hints | None) -> tuple[values.Hint, ...] | None:
    if hints is None:
        return None
    if isinstance(hints, HintList):
        found = sorted(hints.masks, key=masks.width)[:MOST_HINTS]
    else:
        found = [1 << zone for zone in hints.room.zones if hints.room.suits(1 << zone)]
    return tuple(values.Hint(zones=masks.members(mask), preferred=hints.prefers(mask)) for mask in found)


def _notes(admitted: Admission) -> Iterator[str]:
    if admitted.outcome.slow:
        yield formats.slow(admitted.outcome.steps)
    offered = predicates.allocatable(admitted.kubelet, admitted.before)
    for resource in requests.effective(admitted.pod):
        if resourcenames.is_extended(resource) and resource not in offered:
            yield formats.not_on_this_machine(resource)


def _container(kubelet: Kubelet, name: str, placed: ContainerPlacement) -> values.AdmittedContainer:
    mask, preferred = placed.affinity
    return values.AdmittedContainer(
        name=name,
        zones=masks.members(_zones(kubelet, placed)),
        affinity=values.Affinity(zones=None if mask is None else masks.members(mask), preferred=preferred),
        cpus=None if placed.cpus is None else cpuset.text(placed.cpus),
        memory=tuple(
            values.MemoryBlock(type=block.kind, zones=masks.members(block.zones), bytes=block.size)
            for block in placed.memory
        ),
        devices={resource: tuple(sorted(ids)) for resource, ids in placed.devices.items()},
    )


def _zones(kubelet: Kubelet, placed: ContainerPlacement) -> Mask:
    """Every zone that something of the container sits in."""
    zones = 0
    if kubelet.cpu and placed.cpus:
        for zone, count in kubelet.cpu.topology.by_zone(placed.cpus).items():
            zones |= zone if count else 0
    for block in placed.memory:
        zones |= block.zones
    for resource, ids in placed.devices.items():
        for device in ids:
            zones |= kubelet.devices.inventories[resource].zones.get(device, zonetable.NO_ZONE)
    return zones


def resources(
    kubelet: Kubelet, state: KubeletState, names: Mapping[str, str] = NO_NAMES
) -> tuple[values.Resource, ...]:
    """What the node has and which pods hold it; `names`: full names of pods by uid, where uids are not names."""
    table = zonetable.of(kubelet, state)
    return tuple(
        values.Resource(
            name=name,
            allocatable=values.total(name, total.allocatable),
            free=values.total(name, total.free),
            zones=_zone_states(table.rows.get(name, {}), names),
        )
        for name, total in table.totals.items()
    )


def _zone_states(row: Mapping[Mask, Cell], names: Mapping[str, str]) -> tuple[values.ZoneState, ...]:
    return tuple(
        values.ZoneState(
            zones=masks.members(zones),
            allocatable=cell.allocatable,
            free=cell.free,
            pods={names.get(uid, uid): amount for uid, amount in cell.holders.items()},
        )
        for zones, cell in row.items()
    )


STYLES = {"admitted": "bold green", "rejected": "bold red", "undecided": "bold yellow"}


def draw(page: Page, pod: AdmittedPod) -> None:
    page.add(Text.assemble((formats.pod(pod.full_name), "bold"), "  ", (pod.verdict, STYLES[pod.verdict])))
    lines = formats.labelled()
    lines.add_row("asks for", f"{formats.wants(pod.requests)} ({pod.qos_class})")
    for container in pod.containers:
        for label, text in _placement(container):
            lines.add_row(label, text)
    for label, words in _refusal(pod):
        lines.add_row(label, words)
    page.add(lines, indent=INDENT)
    if pod.explanation and pod.explanation.lacks:
        page.add()
        page.add(_lacks(page, pod.explanation), indent=2 * INDENT)


def line(pod: AdmittedPod) -> tuple[Text, ...]:
    """The same in one row of a table: name, request, verdict, and the place or the reason."""
    place = pod.reason or "; ".join(_short(container) for container in pod.containers)
    verdict = Text(pod.verdict, STYLES[pod.verdict])
    return Text(formats.pod(pod.full_name)), Text(formats.wants(pod.requests)), verdict, Text(place)


def _short(container: AdmittedContainer) -> str:
    cpus = "shared CPUs" if container.cpus is None else f"CPUs {container.cpus}"
    return f"{formats.zones(container.zones)}, {cpus}" if container.zones else cpus


def _refusal(pod: AdmittedPod) -> Iterator[tuple[str, str]]:
    if pod.reason:
        yield "reason", pod.reason
    if pod.message:
        yield "why" if pod.verdict == "undecided" else "message", pod.message
    for note in pod.notes:
        yield "note", note
    if pod.explanation:
        yield from _because(pod, pod.explanation)


def _because(pod: AdmittedPod, explanation: Explanation) -> Iterator[tuple[str, str]]:
    yield "refused at", f"container {explanation.container}" if explanation.container else "the pod as a whole"
    if explanation.text:
        yield "because", explanation.text
    if explanation.node_has_room and explanation.node_free:
        yield "although", formats.node_has_room(pod.requests, explanation.node_free)


def _lacks(page: Page, explanation: Explanation) -> Table:
    """What the pod needs beside what every zone has, and the managers' hints."""
    table = matrix.lacks(page, explanation.lacks, empty=explanation.never)
    hints = {each.resource: each for each in explanation.offered}
    if hints:
        table.add_row("offered", *(_hints_text(hints.get(each.resource)) for each in explanation.lacks))
    return table


def _placement(container: AdmittedContainer) -> Iterator[tuple[str, Text]]:
    place = formats.zones(container.zones) if container.zones else "any zone"
    yield container.name, Text(f"{place}; affinity {_affinity(container)}")
    yield "", Text(f"CPUs {container.cpus}" if container.cpus is not None else "CPUs shared")
    for block in container.memory:
        yield "", Text(f"{block.type} {formats.amount(block.type, block.bytes)} in {formats.zones(block.zones)}")
    for resource, ids in container.devices.items():
        yield "", Text(output.printable(f"{resource} {', '.join(ids)}"))


def _affinity(container: AdmittedContainer) -> str:
    affinity = container.affinity
    zones = "any" if affinity.zones is None else formats.zones(affinity.zones)
    return f"{zones}, {'preferred' if affinity.preferred else 'not preferred'}"


def _hints_text(offered: Offered | None) -> str:
    if offered is None or offered.hints is None:
        return "-"
    preferred = [hint.zones for hint in offered.hints if hint.preferred]
    others = [hint.zones for hint in offered.hints if not hint.preferred]
    if preferred:
        return formats.choices(preferred)
    if others:
        return f"only {formats.choices(others)}"
    return "too many to list" if offered.count else "nothing"

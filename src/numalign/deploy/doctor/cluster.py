"""Checks of the cluster as a whole: versions, nodes, clocks, leftover pods, and what the doctor could not read.

A clock is judged by objects that carry two times of one write: the writer's own, and the API server's in the managed
fields. Kubelets renew a Lease that way every ten seconds, our agents their heartbeat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from numalign.api.nrt import publishers
from numalign.api.objects.pod import Pod
from numalign.deploy.doctor import repairs
from numalign.deploy.doctor.checks import ERROR, INFO, WARNING, Check, Sighting
from numalign.deploy.doctor.observed import ABSENT, LEASES, NODE_LEASES, NODES, PODS, VERSION
from numalign.deploy.doctor.view import View
from numalign.deploy.podtroubles import WatchedPod
from numalign.kubelet import refusals, versions

OLDEST_SERVER: Final = versions.Minor(1, 30)
"""The first with ValidatingAdmissionPolicy, which limits an agent to its own report."""
SKEW: Final = 5.0
LARGE_SKEW: Final = 60.0
NODE_LEASES_READ: Final = LEASES.within(NODE_LEASES).words


def _server_unknown(view: View) -> Iterator[Sighting]:
    if versions.parse(view.observed.version) is None:
        yield Sighting(where="the API server", seen=f'version "{view.observed.version}" names no minor')


def _server_old(view: View) -> Iterator[Sighting]:
    found = versions.parse(view.observed.version)
    if found is not None and found < OLDEST_SERVER:
        yield Sighting(where="the API server", seen=f"version {found}; the oldest supported is {OLDEST_SERVER}")


def _no_nodes(view: View) -> Iterator[Sighting]:
    if not view.nodes:
        seen = f"{len(view.observed.nodes)} nodes, none of them for pods" if view.observed.nodes else "no nodes"
        yield Sighting(where="the cluster", seen=seen)


def _node_not_ready(view: View) -> Iterator[Sighting]:
    for name, node in view.nodes.items():
        ready = node.ready
        if ready is not None and ready.status != "True" and not view.is_young(node.metadata.creation_timestamp):
            yield Sighting(node=name, seen=f"not Ready: {ready.reason or 'no reason given'}")


def _clock_skew(view: View) -> Iterator[Sighting]:
    for lease in view.observed.node_leases:
        name = lease.metadata.name
        if name in view.node_names:
            yield from _skewed(view, lease.spec.renew_time, publishers.latest(lease.metadata).time, name, "kubelet")
    for name, report in view.reports.items():
        beat = report.metadata.annotations.get(publishers.HEARTBEAT)
        ours = [each.time or "" for each in report.metadata.managed_fields if each.manager == publishers.AGENT]
        if beat and ours:
            yield from _skewed(view, beat, max(ours), name, "agent")
    now, here = view.observed.now, view.observed.here
    if now is not None and here is not None and abs((here - now).total_seconds()) > SKEW:
        seconds = (here - now).total_seconds()
        yield Sighting(where="this machine", seen=_off("the clock here", seconds))


def _skewed(view: View, own: str | None, stamped: str | None, node: str, who: str) -> Iterator[Sighting]:
    wrote, received, now = publishers.moment(own), publishers.moment(stamped), view.observed.now
    if received is None and wrote is not None and now is not None and wrote > now:
        # Without the API server's stamp only a time in the future is certainly wrong.
        received = now
    if wrote is None or received is None:
        return
    # The stamp has whole seconds, and the write took a moment.
    seconds = (wrote - received).total_seconds()
    if abs(seconds) > SKEW:
        severity = ERROR if abs(seconds) > LARGE_SKEW else None
        yield Sighting(node=node, seen=_off(f"the clock of its {who}", seconds), severity=severity)


def _off(whose: str, seconds: float) -> str:
    return f"{whose} is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} the API server's"


def _failed_pods(view: View) -> Iterator[Sighting]:
    by_owner: dict[tuple[str, str], list[WatchedPod]] = {}
    for pod in view.observed.pods:
        if refusals.is_rejection(pod):
            by_owner.setdefault((_owner(pod), pod.status.reason), []).append(pod)
    for (owner, reason), pods in sorted(by_owner.items()):
        nodes = sorted({pod.spec.node_name for pod in pods})
        seen = f"{len(pods)} pods of {owner} were rejected with {reason} on {_few(nodes)}"
        for pod in pods:
            yield Sighting(
                where=f"Pod {pod.metadata.full_name}",
                seen=seen,
                repair=repairs.deletion(PODS, pod.metadata, f"Failed: {reason}", unless=None),
            )


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller
    if owner is None:
        return "no controller"
    return f"{owner.kind} {pod.metadata.namespace}/{owner.name}"


def _unread(view: View) -> Iterator[Sighting]:
    for what, why in sorted(view.observed.unread.items()):
        if why == ABSENT:
            yield Sighting(where=what, seen=why, severity=INFO, fix="print them with kubectl get into the file, too")
        else:
            yield Sighting(where=what, seen=why)


def _odd(view: View) -> Iterator[Sighting]:
    for problem in view.observed.odd:
        yield Sighting(where=problem.partition(":")[0].partition(",")[0], seen=problem)


CHECKS: Final = (
    Check(
        id="not-readable",
        severity=WARNING,
        title="The doctor could not read everything",
        why="Checks that need it are skipped, so a fault may be there and not be found.",
        fix="give the doctor the rights of its page, or run it as an administrator",
        find=_unread,
    ),
    Check(
        id="object-unreadable",
        severity=WARNING,
        title="An object cannot be decoded",
        why="numalign skips it, and so do its checks.",
        fix="correct the field that is named",
        find=_odd,
    ),
    Check(
        id="api-server-version-unknown",
        severity=WARNING,
        rule="V2",
        title="The version of the API server cannot be read",
        why="Version skew cannot be judged.",
        fix="see what GET /version answers: a proxy may have changed it",
        needs=(VERSION,),
        find=_server_unknown,
    ),
    Check(
        id="api-server-old",
        severity=ERROR,
        rule="V1",
        title="The API server is too old",
        why="The policy that limits an agent to its own report needs ValidatingAdmissionPolicy.",
        fix=f"upgrade the control plane to {OLDEST_SERVER} or newer",
        needs=(VERSION,),
        find=_server_old,
    ),
    Check(
        id="no-nodes",
        severity=ERROR,
        rule="V3",
        title="There is no node to judge",
        why="No kubelet can be judged, and no pod can run.",
        fix="widen the selection (-l), or add nodes",
        needs=(NODES.plural,),
        find=_no_nodes,
    ),
    Check(
        id="node-not-ready",
        severity=WARNING,
        title="A node is not Ready",
        why="After a change of policies, a kubelet does not start with old state files or a wrong reservedMemory.",
        fix="read the kubelet's log on the node; remove cpu_manager_state and memory_manager_state if it names them",
        needs=(NODES.plural,),
        find=_node_not_ready,
    ),
    Check(
        id="clock-skew",
        severity=WARNING,
        title="A clock is wrong",
        why="Ages of reports, leases and Events are misjudged, and tokens and certificates may be refused.",
        fix="synchronise the clock (NTP or PTP)",
        needs=(NODES.plural, NODE_LEASES_READ),
        find=_clock_skew,
    ),
    Check(
        id="rejected-pods-left",
        severity=WARNING,
        title="Pods that a kubelet rejected are left over",
        why="A scheduler placed pods that the kubelet could not align, and a controller replaces each of them.",
        fix="delete them (--fix); see that reports are current, and that one NUMA-aware scheduler places such pods",
        needs=(PODS.plural,),
        find=_failed_pods,
    ),
)

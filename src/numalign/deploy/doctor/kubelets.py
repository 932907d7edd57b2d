"""Checks of the kubelets: their policies, their reservations and their versions.

The facts come from the reports of our agent, or from /configz. Where neither exists, the first check says so, and the
others pass over the node. The rules are the kubelet's own (kubelet spec 12); the reference deployer's validator has
some of them, and `Check.rule` names those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from numalign.api.objects import requests, resourcenames
from numalign.deploy.doctor import view as views
from numalign.deploy.doctor.checks import ERROR, INFO, WARNING, Check, Sighting
from numalign.deploy.doctor.observed import CONFIGZ, NODES, PODS, REPORTS, VERSION
from numalign.deploy.doctor.view import KubeletFacts, View
from numalign.kubelet import versions
from numalign.placement.explain import amounts

RECONCILE: Final = (1.0, 10.0)
"""Seconds; the range of the reference deployer."""
OLDER_KUBELETS: Final = 3
"""Minors by which Kubernetes lets a kubelet be older than its API server."""
ACTIVE_PODS: Final = "KubeletPodResourcesListUseActivePods"
NEEDED: Final = (NODES.plural,)
RESTART: Final = (
    "drain the node, stop its kubelet, change the configuration, remove cpu_manager_state and memory_manager_state "
    "below its root folder, start it"
)


def _known(view: View) -> Iterator[tuple[str, KubeletFacts]]:
    return ((name, each) for name, each in view.kubelets.items() if each.is_complete)


def _unknown(view: View) -> Iterator[Sighting]:
    for name, facts in view.kubelets.items():
        if facts.problem:
            yield Sighting(node=name, seen=f"/configz cannot be read completely: {facts.problem}")
        elif not facts.is_complete:
            why = view.observed.unread.get(CONFIGZ, "the kubelet did not answer")
            yield Sighting(node=name, seen=f"no report holds the kubelet's configuration, and /configz: {why}")


def _policy_none(view: View) -> Iterator[Sighting]:
    for name, facts in view.kubelets.items():
        if facts.policy == "none":
            yield Sighting(node=name, seen="topologyManagerPolicy is none")


def _best_effort(view: View) -> Iterator[Sighting]:
    for name, facts in view.kubelets.items():
        if facts.policy == "best-effort":
            yield Sighting(node=name, seen="topologyManagerPolicy is best-effort")


def _settings_differ(view: View) -> Iterator[Sighting]:
    kinds = Counter((each.policy, each.scope) for each in view.kubelets.values() if each.policy and each.scope)
    if len(kinds) > 1:
        parts = (f"{count} nodes with {policy} and scope {scope}" for (policy, scope), count in kinds.most_common())
        yield Sighting(seen=", ".join(parts), where="the cluster")


def _options_ignored(view: View) -> Iterator[Sighting]:
    for name, facts in view.kubelets.items():
        if facts.policy == "none" and facts.topology_options:
            options = ", ".join(sorted(facts.topology_options))
            yield Sighting(node=name, seen=f"topologyManagerPolicyOptions ({options}) with policy none")


def _cpu_not_static(view: View) -> Iterator[Sighting]:
    for name, facts in _known(view):
        if facts.cpu != "static":
            yield Sighting(node=name, seen=f"cpuManagerPolicy is {facts.cpu}")


def _reconcile_period(view: View) -> Iterator[Sighting]:
    least, most = RECONCILE
    for name, facts in view.kubelets.items():
        if facts.reconcile_seconds is not None and not least <= facts.reconcile_seconds <= most:
            yield Sighting(node=name, seen=f"cpuManagerReconcilePeriod is {facts.reconcile_seconds:g} s")


def _reserved_cpus(view: View) -> Iterator[Sighting]:
    for name, facts in view.kubelets.items():
        if facts.names_reserved_cpus is False:
            yield Sighting(node=name, seen="reservedSystemCPUs is empty")


def _memory_off(view: View) -> Iterator[Sighting]:
    for name, facts in _known(view):
        if facts.memory != "Static":
            yield Sighting(node=name, seen=f"memoryManagerPolicy is {facts.memory}")


def _reserved_memory_missing(view: View) -> Iterator[Sighting]:
    for name, facts in _known(view):
        if facts.reserved_memory == {}:
            withheld = views.withheld_memory(view.nodes[name])
            total = "" if withheld is None else f" that sum up to {withheld} bytes"
            yield Sighting(
                node=name,
                seen="reservedMemory is empty",
                fix=f"add reservedMemory entries{total}: kubeReserved + systemReserved + evictionHard of memory",
            )


def _reserved_memory_wrong(view: View) -> Iterator[Sighting]:
    for name, facts in view.kubelets.items():
        withheld = views.withheld_memory(view.nodes[name])
        if not facts.reserved_memory or withheld is None:
            continue
        total = sum(limits.get(resourcenames.MEMORY, 0) for limits in facts.reserved_memory.values())
        if total != withheld:
            fix = f"make the entries of reservedMemory sum up to {withheld} bytes, which the node keeps from pods"
            yield Sighting(node=name, seen=f"reservedMemory sums up to {total} bytes, not {withheld}", fix=fix)


def _hugepages_unaligned(view: View) -> Iterator[Sighting]:
    for name, facts in _known(view):
        pages = sorted(
            f"{amounts.bare(kind, size)} {kind}"
            for kind, size in view.capacity(view.nodes[name]).items()
            if resourcenames.is_hugepages(kind) and size > 0
        )
        if pages and facts.memory != "Static":
            yield Sighting(node=name, seen=f"{', '.join(pages)} with memoryManagerPolicy {facts.memory}")


def _hugepages_unreserved(view: View) -> Iterator[Sighting]:
    offered = {name for node in view.observed.nodes for name, size in view.capacity(node).items() if size > 0}
    for pod in view.observed.pods:
        if pod.spec.node_name or pod.status.is_finished:
            continue
        lacking = sorted(
            kind
            for kind, amount in requests.effective(pod).items()
            if resourcenames.is_hugepages(kind) and amount.value > 0 and kind not in offered
        )
        if lacking:
            yield Sighting(
                where=f"Pod {pod.metadata.full_name}",
                seen=f"requests {', '.join(lacking)}, of which no node has any",
                fix=f"reserve {', '.join(lacking)} on the nodes (boot option or sysfs), then restart their kubelets",
            )


def _minor_unknown(view: View) -> Iterator[Sighting]:
    for name, node in view.nodes.items():
        found, written = views.minor(node), node.status.node_info.kubelet_version
        if found is None:
            yield Sighting(node=name, seen=f'kubelet version "{written}" names no minor')
        elif versions.clamped(found) != found:
            stands_in = versions.clamped(found)
            yield Sighting(node=name, seen=f"kubelet {found}; the rules of {stands_in} stand in for it")


def _version_skew(view: View) -> Iterator[Sighting]:
    server = versions.parse(view.observed.version)
    if server is None:
        return
    for name, node in view.nodes.items():
        found = views.minor(node)
        if found is None:
            continue
        if found > server:
            yield Sighting(node=name, seen=f"kubelet {found} is newer than the API server {server}")
        elif server.major == found.major and server.minor - found.minor > OLDER_KUBELETS:
            yield Sighting(node=name, seen=f"kubelet {found} is {server.minor - found.minor} minors behind {server}")


def _pod_lists_differ(view: View) -> Iterator[Sighting]:
    first = versions.GATES[ACTIVE_PODS][0].since
    found = {name: minor for name, node in view.nodes.items() if (minor := views.minor(node)) is not None}
    old = [name for name, minor in found.items() if minor < first]
    if old and len(old) < len(found):
        for name in old:
            yield Sighting(
                node=name, seen=f"kubelet {found[name]} lists pods that ended; others from {first} on do not"
            )


CHECKS: Final = (
    Check(
        id="kubelet-config-unknown",
        severity=WARNING,
        rule="V4",
        title="The kubelet's configuration is not known",
        why="Its policies cannot be judged, and a scheduler that guesses them may place pods that the node rejects.",
        fix="run the numalign agent on the node, or allow the doctor to get nodes/proxy",
        needs=(NODES.plural, REPORTS[0].plural),
        find=_unknown,
    ),
    Check(
        id="topology-policy-none",
        severity=ERROR,
        rule="V10",
        title="The Topology Manager is off",
        why="The kubelet aligns nothing: CPUs, memory and devices of a pod may come from different zones.",
        fix=f"set topologyManagerPolicy to single-numa-node or restricted ({RESTART}), or leave the node out with -l",
        needs=NEEDED,
        find=_policy_none,
    ),
    Check(
        id="topology-policy-best-effort",
        severity=WARNING,
        title="The Topology Manager aligns only where it is easy",
        why="The kubelet admits every pod, aligned or not.",
        fix="set topologyManagerPolicy to single-numa-node or restricted if pods must be aligned",
        needs=NEEDED,
        find=_best_effort,
    ),
    Check(
        id="topology-settings-differ",
        severity=INFO,
        title="Nodes have different Topology Manager policies or scopes",
        why="The same pod fits on one node and not on an equal one. A pod that needs one of them has to select it.",
        fix="nothing, if that is wanted: label the groups of nodes, and let pods select them",
        needs=NEEDED,
        find=_settings_differ,
    ),
    Check(
        id="topology-options-ignored",
        severity=WARNING,
        title="Topology Manager options without a policy",
        why="With policy none the kubelet does not even parse the options.",
        fix="set topologyManagerPolicy, or remove the options",
        needs=NEEDED,
        find=_options_ignored,
    ),
    Check(
        id="cpu-manager-not-static",
        severity=ERROR,
        rule="V5",
        title="The CPU Manager is off",
        why="No container gets CPUs of its own, so the kubelet cannot align CPUs.",
        fix=f"set cpuManagerPolicy to static and reserve CPUs ({RESTART})",
        needs=NEEDED,
        find=_cpu_not_static,
    ),
    Check(
        id="cpu-reconcile-period",
        severity=WARNING,
        rule="V6",
        title="The CPU Manager rarely or never corrects cpusets",
        why="After a change, containers keep CPUs that belong to others until the next correction.",
        fix="set cpuManagerReconcilePeriod between 1s and 10s",
        needs=NEEDED,
        find=_reconcile_period,
    ),
    Check(
        id="reserved-cpus-unset",
        severity=WARNING,
        rule="V7",
        title="The reserved CPUs are not named",
        why="The kubelet picks the CPUs of the system itself, so interrupts and services cannot be pinned to them.",
        fix="set reservedSystemCPUs, for example to the first core of each socket",
        needs=NEEDED,
        find=_reserved_cpus,
    ),
    Check(
        id="memory-manager-off",
        severity=WARNING,
        rule="V8",
        title="The Memory Manager is off",
        why="Memory and hugepages are not aligned: a container with CPUs in one zone may get memory of another.",
        fix=f"set memoryManagerPolicy to Static and reservedMemory ({RESTART})",
        needs=NEEDED,
        find=_memory_off,
    ),
    Check(
        id="reserved-memory-missing",
        severity=WARNING,
        rule="V9",
        title="No memory is reserved by zone",
        why="A kubelet with memoryManagerPolicy Static does not start without it.",
        fix="add reservedMemory entries",
        needs=NEEDED,
        find=_reserved_memory_missing,
    ),
    Check(
        id="reserved-memory-wrong",
        severity=ERROR,
        title="Reserved memory does not sum up to what the node keeps from pods",
        why="A kubelet with memoryManagerPolicy Static refuses such a configuration when it starts.",
        fix="make reservedMemory sum up to kubeReserved + systemReserved + evictionHard of memory",
        needs=NEEDED,
        find=_reserved_memory_wrong,
    ),
    Check(
        id="hugepages-unaligned",
        severity=WARNING,
        title="Hugepages without the Memory Manager",
        why="The kubelet does not align hugepages, so a pod may get pages of a distant zone.",
        fix="set memoryManagerPolicy to Static",
        needs=NEEDED,
        find=_hugepages_unaligned,
    ),
    Check(
        id="hugepages-unreserved",
        severity=ERROR,
        title="A pod waits for hugepages that no node has",
        why="The pod stays Pending: hugepages have to be reserved on the node before its kubelet starts.",
        fix="reserve them on the nodes, then restart their kubelets",
        needs=(NODES.plural, PODS.plural),
        find=_hugepages_unreserved,
    ),
    Check(
        id="kubelet-minor-unknown",
        severity=WARNING,
        title="The model does not know this minor of the kubelet",
        why="The scheduler predicts with the rules of the nearest minor, and the kubelet may decide otherwise.",
        fix=f"use numalign of a release that knows it; this one knows {versions.OLDEST} to {versions.NEWEST}",
        needs=NEEDED,
        find=_minor_unknown,
    ),
    Check(
        id="kubelet-version-skew",
        severity=WARNING,
        title="The kubelet and the API server are too far apart",
        why="Kubernetes supports kubelets up to three minors older than the API server, and none that is newer.",
        fix="upgrade the older of the two",
        needs=(NODES.plural, VERSION),
        find=_version_skew,
    ),
    Check(
        id="kubelet-pod-lists-differ",
        severity=WARNING,
        title="Some kubelets list pods that ended, others do not",
        why="A fingerprint of all pods then means different things on different nodes, and stock schedulers stall.",
        fix="upgrade the older kubelets, or publish fingerprints of pods with exclusive resources",
        needs=NEEDED,
        find=_pod_lists_differ,
    ),
)

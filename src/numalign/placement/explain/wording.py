"""All sentences about why a pod does not fit and what would make it fit.

Events, logs, pages and the command line call `sentence` for a reason, `warning` and `assumption` for notes,
`suggestion` for what would help, and `unavailable` for the message of an Event. `reference`
says a reason in the words of NodeResourceTopologyMatch and kube-scheduler. No other module turns reasons into text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from numalign.api.attributes.directresult import DirectResult
from numalign.api.attributes.directspec import DirectSpec
from numalign.api.objects.meta import OwnerReference
from numalign.kubelet.demand import Role
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.decisions import Code
from numalign.placement.explain.amounts import bare, named
from numalign.placement.explain.reasons import (
    Absent,
    AnyCause,
    AnySuggestion,
    Freeing,
    Group,
    Lack,
    NodeCause,
    Obstacle,
    Oversized,
    Reason,
    Relaxing,
    Shrinking,
    Waiting,
)
from numalign.placement.reference import status
from numalign.placement.rowmodel.causes import Cause

MOST_NAMES: Final = 3
"""Pods and nodes that a sentence names; more are counted."""

MILLI: Final = 1000
EVEN_EMPTY: Final = ", even when empty"
NO_NODES: Final = "no nodes available to schedule pods"
"""kube-scheduler's words."""
WITHOUT_REPORT: Final = (
    "placed without topology data: the node has no topology report, so its kubelet may reject the pod"
)
CANNOT_SAY: Final = "cannot say: the node has no topology report, and it rejected this very pod"
DECIDED: Final = "decided in direct mode: {}"
PROMISED: Final = "node(s) keep their zones for nominated pods"
REJECTED: Final = "node(s) turned away pods like this one"
REJECTED_REPLICAS: Final = "node(s) keep turning away replicas of the same owner"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
"""kube-scheduler's words."""
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
"""kube-scheduler's words."""
NO_ZONES: Final = "cannot align the pod even without pods of lower priority"
NOT_ENDED: Final = "node(s) have pods that have not ended yet"
UNTRIED: Final = "may fit; it was not tried, because too many nodes hang on pods to come"
NOT_ENOUGH_LEFT: Final = "the node as a whole has not enough left"
FOR_OTHERS: Final = "the pod is for other nodes"
NOT_NEEDED: Final = "node(s) may take the pod without preemption"

SHORT: Final = "{subject} needs {need} {in_zones}, best {zones_have} {most}{ever}"
SHORT_ON_NODE: Final = "{subject} needs {need}, {at_most} free on a node"
EMPTY_TOO_SMALL: Final = "{subject} needs {need}, a node has {at_most}{ever}"
TOGETHER: Final = "{subject} needs {need} {in_zones}, and no {zones_have} room for it{never}"
AFTER_INIT: Final = "{subject} needs {need} {in_zones}, and the zones of its init containers have no room for it"
BOUND_ZONES: Final = (
    "{subject} needs {need} {in_zones}, and other pods' memory binds zones that have room to other zones"
)
WHERE_SHORT: Final[Mapping[AnyCause, str]] = {
    Cause.NO_COMMON_ZONES: SHORT,
    Cause.TOO_FEW_CPUS: SHORT_ON_NODE,
    Cause.TOO_FEW_DEVICES: SHORT_ON_NODE,
    Cause.TOO_LITTLE_MEMORY: SHORT_ON_NODE,
}
"""Sentences for reasons in which one resource is short."""

WITHOUT_AMOUNTS: Final[Mapping[AnyCause, str]] = {
    Cause.TOO_FEW_CPUS: "the pod's own CPUs do not suffice for all of its containers",
    Cause.TOO_LITTLE_MEMORY: "the memory manager finds no zones for {subject}",
}
"""Sentences for reasons without amounts."""

SENTENCES: Final[Mapping[AnyCause, str]] = {
    Cause.NO_COMMON_ZONES: TOGETHER,
    Cause.DIFFERENT_ZONE_COUNTS: "{subject} has to get everything from the same zones, but takes {counts}",
    Cause.TOO_FEW_CPUS: "{subject} needs {need}, more than are free",
    Cause.TOO_FEW_DEVICES: "{subject} needs {need}, more than are free",
    Cause.TOO_LITTLE_MEMORY: "{subject} needs {need}, which the zones that it is aligned to do not have",
    Cause.MEMORY_GROUP: "{subject} needs memory of several zones, some of which are bound to other zones by other pods",
    Cause.NO_HEALTHY_DEVICE: "{subject} needs {need}, and no such device is healthy",
    Cause.PARTIAL_CORES: (
        "{subject} needs {need}, but only whole cores of {threads} CPUs are given out: ask for {whole}"
    ),
    Cause.TOO_FEW_FULL_CORES: "{subject} needs {need} on whole cores, and fewer such cores are free",
    Cause.BUDGET_USED_UP: "the pod's own resources leave nothing for containers without a share of their own",
    Cause.NOT_WHOLE_BYTES: "{subject} asks for a fraction of a byte",
    Cause.UNEVEN_SHARES: "{subject} needs CPUs that cannot be divided among its zones",
    Cause.KEPT_APART: "{subject} must not share NUMA zones with pods there, and others have no room for {need}",
    Cause.NOT_CONNECTED: "{subject} needs {need}, and no free devices are connected as the pod asks",
    Cause.UNSETTLED_PODS: "{subject} fits or not depending on where other pods settle{pods}",
    Cause.TERMINATING_PODS: "{subject} fits or not depending on when terminating pods end{pods}",
    Cause.SIZE_UNKNOWN: "{subject} fits or not depending on the zone of {resources} that the report leaves out",
    Cause.GROUPS_UNKNOWN: "{subject} fits or not depending on memory groups, which the report does not tell",
    Cause.CORES_UNKNOWN: "{subject} fits or not depending on cores and sockets, which the report does not tell",
    Cause.DEVICE_CHOICE: "{subject} fits or not depending on which devices are chosen for an earlier container",
    Cause.CPU_IDS: "{subject} fits or not depending on which CPUs are free, which amounts do not tell",
    Cause.MANY_ZONES: "{subject} is not decided: the node has too many sets of zones to go through",
    Cause.MEMORY_TYPE_UNKNOWN: "{subject} is not decided: it asks for a type of memory that the node does not report",
    Cause.NEVER_ENDS: "{subject} is not decided: the kubelet would never end looking for its CPUs",
    NodeCause.NO_NODE: "there is a topology report, but no node that takes pods",
    NodeCause.TOTALS: "the pod requests {need}, {at_most} left on a node",
    NodeCause.POD_COUNT: "no more pods are allowed on a node",
    NodeCause.NOT_COUNTED: "not counted any further: amounts alone do not decide, and too many nodes are like that",
    NodeCause.PLUGIN: "NodeResourceTopologyMatch refuses: {reference}",
    Unkept.NO_REPORT: "the pod's annotations ask for {wish}, and there is no topology report",
    Unkept.POLICY: "the pod's annotations ask for {wish}, and policy {policy} is too weak for it",
    Unkept.NOT_DIRECT: "the pod's annotations ask for {wish}, which needs a node in direct mode",
    Unkept.NOT_ENFORCED: "the pod's annotations ask for {wish}, which the node's agent cannot enforce",
    Unkept.SCOPE: "the pod's annotations ask for {wish}, and the node has scope {scope} with policy {policy}",
}

ASSUMPTIONS: Final[Mapping[Assumption, str]] = {
    Assumption.POLICY_FROM_KUBELET_DEFAULT: "policy or scope not reported; the kubelet's defaults assumed",
    Assumption.CPU_POLICY_FROM_AMOUNTS: "CPU manager policy not reported; static where CPUs are allocatable",
    Assumption.CPU_OPTIONS_NONE: "CPU manager options not reported; none assumed",
    Assumption.MEMORY_POLICY_FROM_AMOUNTS: "memory manager policy not reported; Static where memory is listed",
    Assumption.SIZE_FROM_ALLOCATABLE: "sizes of zones not reported; what is allocatable counts",
    Assumption.GROUPS_UNKNOWN: "memory groups not reported; those of known pods count, if these explain what is in use",
    Assumption.CORES_UNKNOWN: "cores not reported; only what holds for any cores is certain",
    Assumption.DISTANCES_UNKNOWN: "distances between zones not reported; none are preferred",
    Assumption.CLOSEST_DESPITE_GAPS: (
        "prefer-closest-numa-nodes with gaps in the zones' ids ends kubelets with a panic; one that survives it assumed"
    ),
    Assumption.MINOR_ASSUMED: "kubelet version not reported; the newest known assumed",
    Assumption.PLACEMENTS_UNKNOWN: "zones of running pods not reported; predicted instead",
    Assumption.NO_REPORT: "no usable topology report; alignment not looked at",
    Assumption.REPORT_DELETED: "topology report deleted; the last known zones stay in force",
    Assumption.DIRECT_NOT_POSSIBLE: (
        "the agent offers direct mode, but the kubelet's CPU, memory and topology managers are not all off, or the "
        "report has no cores; predict mode applies"
    ),
    Assumption.KUBELET_AWAY: "the kubelet did not answer the agent; the last known zones stay in force",
}

STALE: Final = status.STALE.reasons[0]
WHOLE_NODE: Final[Mapping[AnyCause, str]] = {
    NodeCause.NO_NODE: status.NODE_NOT_FOUND.reasons[0],
    NodeCause.TOTALS: "Insufficient {resource}",
    NodeCause.POD_COUNT: "Too many pods",
}
"""kube-scheduler's words."""
BY_ROLE: Final[Mapping[Role | None, str]] = {
    None: status.POD.reasons[0],
    Role.INIT: status.INIT_CONTAINER.reasons[0],
    Role.SIDECAR: status.SIDECAR.reasons[0],
    Role.APP: status.CONTAINER.reasons[0],
}
SUBJECTS: Final[Mapping[Role | None, str]] = {
    None: "the pod",
    Role.INIT: "init container {}",
    Role.SIDECAR: "sidecar container {}",
    Role.APP: "container {}",
}


def sentence(reason: Reason) -> str:
    """The reason of one node, or of many that are alike."""
    return _template(reason).format_map(_readable(reason))


def sentence_with_zones(reason: Reason) -> str:
    """The reason of one node; where resources fit only in different zones, with these zones."""
    fits = [f"only {_have(each.fitting)} {named(each.resource, each.need, up=True)}" for each in reason.disagreeing]
    return f"{sentence(reason)}: {joined(fits)}" if fits else sentence(reason)


def _have(zones: Sequence[int]) -> str:
    return f"zone {zones[0]} has" if len(zones) == 1 else f"zones {joined([*map(str, zones)])} have"


def warning(group: Group[Reason]) -> str:
    """A note about nodes that accept the pod although they do not keep its intent."""
    return f"{counted(len(group.nodes), 'node')}: allowed, but {sentence(group.answer)}"


def assumption(what: Assumption, nodes: int) -> str:
    return f"{counted(nodes, 'node')}: {ASSUMPTIONS[what]}"


def headline(fitting: int, nodes: int) -> str:
    return f"{fitting:,} of {counted(nodes, 'node')} can take the pod"


def headline_never(nodes: int) -> str:
    return f"none of {counted(nodes, 'node')} can take the pod, even when empty"


def never(reason: Reason) -> str:
    """Of a pod that every node would refuse even without other pods."""
    return f"The pod fits on no node, even when empty: {sentence(reason).removesuffix(EVEN_EMPTY)}."


def obstacle(found: Obstacle) -> str:
    """Why nodes refuse the pod that have this obstacle."""
    if found.cordoned:
        return "cordoned (SchedulingDisabled)"
    if found.taints:
        return f"untolerated taint{'s' * (len(found.taints) > 1)} {_few(found.taints)}"
    return f"does not match the pod's node selector or affinity: {_few(found.labels)}"


def reference(reason: Reason) -> str:
    """The reason in the words of the reference plugin or kube-scheduler, which name no container."""
    if reason.cause in WHOLE_NODE:
        return WHOLE_NODE[reason.cause].format(resource=reason.named_lacks[0].resource if reason.named_lacks else "")
    if reason.code in (Code.NOT_CERTAIN, Code.NOT_DECIDED):
        return STALE
    return BY_ROLE[None if reason.scope == "pod" else reason.role]


def unavailable(nodes: int, counts: Mapping[str, int]) -> str:
    """kube-scheduler's message for a pod that no node takes. Entries are sorted as text: "10 x" precedes "2 x"."""
    if not nodes:
        return NO_NODES
    entries = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    return f"0/{nodes} nodes are available:" + (f" {entries}." if entries else "")


def of_zones(reason: Reason) -> str:
    """The reason in an Event: the plugin's message, then the sentence of this module."""
    known, ours = reference(reason), sentence(reason)
    if reason.cause is NodeCause.PLUGIN:
        return known
    # The plugin has one text for everything that is not certain, and it blames the report.
    return ours if known == STALE else f"{known} ({ours})"


def decided(result: DirectResult) -> str:
    """What the Event says of a pod on a node in direct mode."""
    parts = []
    for each in result.containers:
        zones = f"NUMA {', '.join(map(str, each.zones))}" if each.zones else "no NUMA zone"
        devices = [f"{name} {grant.minor}" for name, grants in each.devices.items() for grant in grants]
        beside = f" with {_few(devices)}" if devices else ""
        parts.append(f"{each.name} on {f'CPUs {each.cpuset}' if each.cpuset else 'shared CPUs'} of {zones}{beside}")
    return DECIDED.format(_few(parts))


def zones_ignored(profile: str, plugin: str) -> str:
    """A warning about a profile that disables the zone plugin."""
    return f"profile {profile} does not look at zones ({plugin} is disabled); a node may reject the pod"


def last_reports_unknown(nodes: int) -> str:
    """Of nodes without a report, where no scheduler was asked."""
    which = "1 node has" if nodes == 1 else f"{nodes} nodes have"
    return (
        f"{which} no topology report now; a running scheduler still uses the last report that it saw, and may answer"
        " otherwise: ask it with --server"
    )


def first_reports(nodes: int) -> str:
    """Of a pod that some nodes might take, once their zones are known."""
    return f"The pod waits for the first topology report of {counted(nodes, 'node')}."


def contested(node: str, others: int) -> str:
    """Of a pod for which pods were evicted, while other schedulers may take their room."""
    return (
        f"the evicted pods have left node {node}; the pod waits for a moment, because {counted(others, 'pod')} of "
        "other schedulers may take the room"
    )


def unattended(scheduler: str, traces: Sequence[str], seconds: float | None, bound: Sequence[str], lease: str) -> str:
    """Of a pending pod that carries no trace of a scheduler. `bound`: names under which other pods have a node."""
    since = f" in {seconds:,.0f} s" if seconds is not None else ""
    said = f"no scheduler has looked at the pod{since}: it has no {' and no '.join(traces)}"
    if lease:
        return f"{said}; {lease}"
    if scheduler in bound:
        return f"{said}; other pods were scheduled under the name {scheduler}"
    known = f"pods here were scheduled under {_few(bound)}" if bound else "no pod here was scheduled yet"
    return f"{said}. Does a scheduler named {scheduler} run? {known[0].upper()}{known[1:]}"


def lease(name: str, holder: str, age: float | None, *, is_current: bool) -> str:
    """Of the Lease that bears the name of a pod's scheduler."""
    renewed = f", renewed {age:,.0f} s ago" if age is not None else ""
    if is_current:
        return f"its scheduler runs (lease {name} is held by {holder}{renewed})"
    return f"its scheduler does not run: lease {name} is not held" + (f" any more{renewed}" if holder else "")


def preempts(node: str, pods: Sequence[str], priorities: tuple[int, int], violations: int) -> str:
    """Of a pod that gets a node once pods of lower priority are evicted. `priorities`: their lowest and highest."""
    budgets = f", {violations} of them against disruption budgets" if violations else ""
    lowest, highest = priorities
    whose = f"of priority {lowest}" + (f" to {highest}" if highest != lowest else "")
    return f"would preempt {counted(len(pods), 'pod')} {whose} on {node}{budgets}: {_few(_short(pods))}"


def final(owner: OwnerReference | None) -> str:
    """What becomes of a pod that its node rejected."""
    if owner is not None:
        return f"the pod is Failed for good; {owner.kind} {owner.name} creates another one"
    return "the pod is Failed for good, and no scheduler tries it again: delete it and create it again"


def rejected(node: str, reason: str, pause: float, owner: OwnerReference | None = None) -> str:
    """The message about a pod that the kubelet rejected."""
    return (
        f"node {node} rejected the pod ({reason}); {final(owner)}; pods of the same shape are not scheduled there "
        f"for {pause:g} s, and until the node changes"
    )


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def _template(reason: Reason) -> str:
    if reason.after_init and reason.worst is None:
        return AFTER_INIT
    if reason.cause is Cause.DIFFERENT_ZONE_COUNTS and len({lack.zones for lack in reason.named_lacks}) == 1:
        # One zone has to hold everything; several types of memory may be too much for it only together.
        return SHORT if _is_one_short(reason) else TOGETHER
    if reason.cause is Cause.MEMORY_GROUP and any(lack.zones for lack in reason.named_lacks):
        return BOUND_ZONES
    if _is_one_short(reason) and reason.named_lacks[0].too_large and not reason.named_lacks[0].zones:
        return EMPTY_TOO_SMALL
    special = WHERE_SHORT if _is_one_short(reason) else {} if reason.named_lacks else WITHOUT_AMOUNTS
    return special.get(reason.cause, SENTENCES[reason.cause])


def _is_one_short(reason: Reason) -> bool:
    return len(reason.named_lacks) == 1 and reason.named_lacks[0].is_short


def _readable(reason: Reason) -> Mapping[str, object]:
    lacks = reason.named_lacks
    zones = max((lack.zones for lack in lacks), default=0)
    together = zones > 0 and len(lacks) > 1
    return {
        "subject": SUBJECTS[reason.role].format(reason.container),
        "need": joined([named(lack.resource, lack.need, up=True) for lack in lacks]),
        "most": bare(lacks[0].resource, lacks[0].most or 0) if lacks else "",
        "at_most": f"at most {bare(lacks[0].resource, lacks[0].most)}" if lacks and lacks[0].most else "none",
        "in_zones": _in_zones(zones, together=together),
        "zones_have": "zone has" if zones == 1 else f"{zones} zones have",
        "counts": _counts(lacks),
        "ever": EVEN_EMPTY if lacks and lacks[0].too_large else "",
        "never": EVEN_EMPTY if reason.structural else "",
        "resources": joined([lack.resource for lack in lacks]) or "resources",
        "threads": reason.threads_per_core,
        "whole": _whole_cores(reason),
        "pods": _names(reason.waiting_for),
        "wish": _wish(reason),
        "policy": reason.policy,
        "scope": reason.scope,
        "reference": reference(reason),
    }


def _in_zones(zones: int, *, together: bool) -> str:
    if together:
        return "in the same NUMA zone" if zones == 1 else f"in the same {zones} NUMA zones"
    return "in one NUMA zone" if zones == 1 else f"in {zones} NUMA zones"


def _whole_cores(reason: Reason) -> str:
    """The amounts of CPUs next to what is needed that make whole cores."""
    if not reason.lacks:
        return "a multiple"
    threads = reason.threads_per_core
    below = reason.lacks[0].need // MILLI // threads * threads
    return f"{below} or {below + threads}" if below else f"{threads}"


def _counts(lacks: Sequence[Lack]) -> str:
    amounts: dict[int, list[str]] = {}
    for lack in lacks:
        amounts.setdefault(lack.zones, []).append(named(lack.resource, lack.need, up=True))
    return ", and ".join(f"{counted(zones, 'zone')} for {joined(amounts[zones])}" for zones in sorted(amounts))


def _wish(reason: Reason) -> str:
    wish = reason.wish
    if wish is None:
        return "alignment"
    scope = f"scope {wish.scope}" if wish.scope else ""
    strictness = f"strictness {wish.strictness}" if wish.strictness else ""
    return joined([part for part in (scope, strictness, *_direct_wishes(wish.direct)) if part]) or "alignment"


def _direct_wishes(spec: DirectSpec) -> Iterator[str]:
    if spec.policy is not None:
        yield f"policy {spec.policy}"
    if spec.scope is not None:
        yield f"scope {spec.scope}"
    if spec.exclusive:
        yield "zones of its own"
    if spec.enforce_memory:
        yield "memory limited to its zones"
    if spec.excluded or spec.policies:
        yield "alignment of some containers"
    if spec.required_cpus or spec.cpu_exclusion != "None":
        yield "a choice of CPUs"
    if spec.devices.requests:
        yield "parts of devices"


def _names(pods: Sequence[str]) -> str:
    if not pods:
        return ""
    return f": {_few(pods)}"


def joined(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def suggestion(found: AnySuggestion) -> str:
    """The suggestion as a sentence."""
    match found:
        case Freeing():
            return _freeing(found)
        case Shrinking():
            return f"would fit {_on(found.nodes)} with {_instead(found)}"
        case Oversized():
            return _oversized(found)
        case Relaxing():
            return f"would fit {_on(found.nodes)} {found.change}"
        case Absent(resource=resource):
            return f"no node has any {resource}"
        case Waiting(node=node, pods=pods):
            arrived = "has" if len(pods) == 1 else "have"
            return f"will be clear for {node} when {_pods(pods)} {arrived} arrived there"


def _freeing(found: Freeing) -> str:
    said = f"would fit on {found.node} without {_pods(found.pods)}"
    if not found.amount:
        return said
    zones = f" in zone{'s' * (len(found.zones) > 1)} {joined([*map(str, found.zones)])}" if found.zones else ""
    hold = "holds" if len(found.pods) == 1 else "hold"
    return f"{said}, which {hold} {named(found.resource, found.amount)}{zones}"


def _oversized(found: Oversized) -> str:
    never, wider = "it fits on no node, even when empty: ", f"use nodes with policy {' or '.join(found.policies)}"
    if not found.resource:
        return never + wider
    parts = [f"{never}ask for {_instead(found, at_most=True)}"]
    now = found.fits_now
    if now is not None and now.amount == found.amount:
        parts.append(f" (which would fit {_on(now.nodes)} now)")
    elif now is not None:
        parts.append(f" ({bare(now.resource, now.amount)} would fit {_on(now.nodes)} now)")
    if found.policies:
        parts.append(f", or {wider}")
    return "".join(parts)


def _instead(found: Shrinking | Oversized, *, at_most: bool = False) -> str:
    whose = f" in container {found.container}" if found.container else ""
    most = "at most " if at_most else ""
    wanted = bare(found.resource, found.instead_of, up=True)
    return f"{most}{named(found.resource, found.amount)} instead of {wanted}{whose}"


def _on(nodes: Sequence[str]) -> str:
    """Names the nodes; counts them as well if there are many."""
    return f"on {_few(nodes)}" if len(nodes) <= MOST_NAMES else f"on {len(nodes):,} nodes ({_few(nodes)})"


def _pods(names: Sequence[str]) -> str:
    return f"pod{'s' * (len(names) != 1)} {_few(_short(names))}"


def _short(names: Sequence[str]) -> list[str]:
    return [name.removeprefix("default/") for name in names]


def _few(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return joined([*names[:MOST_NAMES], *([f"{more:,} more"] if more > 0 else [])])

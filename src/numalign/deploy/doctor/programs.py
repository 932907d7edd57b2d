"""Which programs run in the cluster: publishers of reports and schedulers, ours and others; and checks of them.

A program is recognised by the words of its command, by its image, or by our labels, so that one that was installed by
hand is found, too. A scheduler's profiles and lease come from the configuration that it mounts. A program that runs
outside the cluster is not seen; what it leaves behind (reports, bound pods, leases) is judged all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import fields, yamltext
from numalign.api.nrt import publishers
from numalign.api.objects import nodematching, qos, stockonly
from numalign.api.objects.node import Node
from numalign.api.objects.pod import DEFAULT_SCHEDULER, Pod
from numalign.api.schedulerconfig import configuration
from numalign.api.schedulerconfig.configuration import LeaderElection
from numalign.deploy import podtroubles
from numalign.deploy.doctor import repairs
from numalign.deploy.doctor.checks import ERROR, INFO, WARNING, Check, Sighting
from numalign.deploy.doctor.observed import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PODS,
    REPORTS,
    Observed,
    TemplateContainer,
    Workload,
)
from numalign.deploy.doctor.view import View
from numalign.deploy.podtroubles import WatchedPod

Component = Literal["agent", "scheduler", "extender"]
Product = Literal["numalign", "rte", "nfd", "kube-scheduler"]

NAME_LABEL: Final = "app.kubernetes.io/name"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
VERSION_LABEL: Final = "app.kubernetes.io/version"
OURS: Final = "numalign"
EXECUTABLES: Final[Mapping[str, Product]] = {
    "resource-topology-exporter": "rte",
    "nfd-topology-updater": "nfd",
    "kube-scheduler": "kube-scheduler",
}
CONDITIONS: Final = "node.kubernetes.io/"
"""Taints of this domain follow from the state of a node; DaemonSets tolerate them or wait for their end."""
KEEPS_OFF: Final = ("NoSchedule", "NoExecute")
WAITS: Final = 60.0
"""Seconds after which a scheduler should have looked at a pod."""
MOST_NAMED: Final = 5
ABANDONED: Final = 60.0
"""Seconds without renewal after which the Lease has no leader."""


class Program(Struct, frozen=True, kw_only=True):
    workload: Workload
    kind: str
    component: Component
    product: Product

    @property
    def title(self) -> str:
        return f"{self.kind} {self.workload.metadata.full_name}"

    @property
    def publishes(self) -> bool:
        return self.component == "agent"

    @property
    def words(self) -> tuple[str, ...]:
        """Commands and arguments of all containers."""
        return tuple(word for each in self.workload.spec.template.spec.containers for word in _words(each))

    def obstacle(self, node: Node) -> str:
        """Why the DaemonSet does not run on the node; empty: it does."""
        spec = self.workload.spec.template.spec
        if not nodematching.allows(spec.node_selector, spec.affinity, node.metadata.name, node.metadata.labels):
            return "its node selector or affinity does not select the node"
        for taint in node.spec.taints:
            kept_off = taint.effect in KEEPS_OFF and not taint.key.startswith(CONDITIONS)
            if kept_off and not nodematching.tolerated(taint.key, taint.value, taint.effect, spec.tolerations):
                return f"it does not tolerate the taint {taint.key}:{taint.effect}"
        return ""


def _words(container: TemplateContainer) -> tuple[str, ...]:
    return (*container.command, *container.args)


def recognised(workload: Workload, kind: str) -> Program | None:
    labels = {**workload.metadata.labels, **workload.spec.template.metadata.labels}
    if any(_follows(_words(each), "extender", "run") for each in workload.spec.template.spec.containers):
        # It answers a stock kube-scheduler, and serves no name itself.
        return Program(workload=workload, kind=kind, component="extender", product="numalign")
    if labels.get(NAME_LABEL) == OURS:
        match labels.get(COMPONENT_LABEL):
            case "agent" | "scheduler" as component:
                return Program(workload=workload, kind=kind, component=component, product="numalign")
    for container in workload.spec.template.spec.containers:
        words = _words(container)
        executables = {word.rpartition("/")[2] for word in words[:1]} | {_image_name(container.image)}
        for name, product in EXECUTABLES.items():
            if name in executables:
                component = "scheduler" if product == "kube-scheduler" else "agent"
                return Program(workload=workload, kind=kind, component=component, product=product)
        for component in ("agent", "scheduler"):
            if OURS in executables and _follows(words, component, "run"):
                return Program(workload=workload, kind=kind, component=component, product="numalign")
    return None


def _follows(words: tuple[str, ...], one: str, other: str) -> bool:
    return any(pair == (one, other) for pair in pairwise(words))


def _image_name(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _image_tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def found(observed: Observed) -> list[Program]:
    """All programs of the cluster that were recognised."""
    workloads = [
        *((each, DAEMON_SETS.kind) for each in observed.daemon_sets),
        *((each, DEPLOYMENTS.kind) for each in observed.deployments),
    ]
    return [program for each, kind in workloads if (program := recognised(each, kind)) is not None]


def publishers_of(view: View) -> list[Program]:
    return [each for each in found(view.observed) if each.publishes and each.kind == DAEMON_SETS.kind]


def schedulers_of(observed: Observed) -> list[Program]:
    return [each for each in found(observed) if each.component == "scheduler"]


def config_maps(program: Program) -> Iterator[tuple[str, str]]:
    """Namespace and name of what it mounts."""
    for volume in program.workload.spec.template.spec.volumes:
        if volume.config_map is not None and volume.config_map.name:
            yield program.workload.metadata.namespace, volume.config_map.name


class Serving(Struct, frozen=True, kw_only=True):
    """What a scheduler serves, by its configuration."""

    program: Program
    names: tuple[str, ...]
    election: LeaderElection
    problem: str = ""

    @property
    def lease(self) -> tuple[str, str]:
        return self.election.resource_namespace, self.election.resource_name


def serving(program: Program, observed: Observed) -> Serving:
    """Profiles and lease; the program's defaults where it mounts no configuration."""
    stock = program.product == "kube-scheduler"
    default = DEFAULT_SCHEDULER if stock else configuration.NAME
    election = LeaderElection(resource_name=configuration.STOCK_LEASE if stock else configuration.NAME)
    texts = {each.metadata.full_name: each.data for each in observed.config_maps}
    for namespace, name in config_maps(program):
        for key, text in sorted(texts.get(f"{namespace}/{name}", {}).items()):
            read = _served(text, f"{namespace}/{name}, {key}", default, election)
            if read is not None:
                return structs.replace(read, program=program)
    missing = [f"{space}/{name}" for space, name in config_maps(program) if f"{space}/{name}" not in texts]
    is_read = CONFIG_MAPS.plural not in observed.unread
    problem = f"ConfigMap {', '.join(missing)} does not exist" if missing and is_read else ""
    return Serving(program=program, names=(default,), election=election, problem=problem)


UNKNOWN: Final = Program(workload=Workload(), kind="", component="scheduler", product="numalign")


@lru_cache(maxsize=64)
def _served(text: str, source: str, default: str, election: LeaderElection) -> Serving | None:
    """None: the text is no scheduler configuration."""
    if configuration.KIND not in text:
        return None
    try:
        documents = yamltext.documents(text, source)
        if len(documents) != 1:
            return None
        root = fields.root(documents[0].value, configuration.KIND, source)
        if root.at("kind").value != configuration.KIND:
            return None
        named = [each.at("schedulerName") for each in fields.items(root.at("profiles"))]
        names = tuple(fields.text(each) if each.given else default for each in named) or (default,)
        everybody = DEFAULT_SCHEDULER in names
        lease = configuration.STOCK_LEASE if everybody else election.resource_name
        elects = configuration.leader_election(root.at("leaderElection"), lease)
    except errors.BadObject as problem:
        return Serving(program=UNKNOWN, names=(default,), election=election, problem=str(problem))
    return Serving(program=UNKNOWN, names=names, election=elects)


def _all_serving(view: View) -> list[Serving]:
    return [serving(each, view.observed) for each in schedulers_of(view.observed)]


# Publishers


def _no_publisher(view: View) -> Iterator[Sighting]:
    if view.nodes and not view.reports and not publishers_of(view):
        yield Sighting(where="the cluster", seen="no DaemonSet of a publisher, and no report")


def _not_on_node(view: View) -> Iterator[Sighting]:
    agents = publishers_of(view)
    for name, node in view.nodes.items():
        obstacles = {each.title: each.obstacle(node) for each in agents}
        if agents and all(obstacles.values()) and not any("taint" in why for why in obstacles.values()):
            yield Sighting(node=name, seen="; ".join(f"{title}: {why}" for title, why in sorted(obstacles.items())))


def _tainted(view: View) -> Iterator[Sighting]:
    agents = publishers_of(view)
    for name, node in view.nodes.items():
        obstacles = {each.title: each.obstacle(node) for each in agents}
        if agents and all(obstacles.values()):
            for title, why in sorted(obstacles.items()):
                if "taint" in why:
                    yield Sighting(node=name, seen=f"{title}: {why}")


def _not_ready(view: View) -> Iterator[Sighting]:
    for program in publishers_of(view):
        pods = {pod.spec.node_name: pod for pod in view.pods_by_owner.get(program.workload.metadata.uid, ())}
        for name, node in view.nodes.items():
            if program.obstacle(node) or view.is_young(program.workload.metadata.creation_timestamp):
                continue
            if view.is_young(node.metadata.creation_timestamp):
                continue
            why = _ails(view, pods.get(name))
            if why:
                yield Sighting(node=name, seen=f"{program.title}: {why}")


def _ails(view: View, pod: WatchedPod | None) -> str:
    if pod is None:
        return "no pod on the node"
    is_ready = any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
    if is_ready or pod.metadata.deletion_timestamp or view.is_young(pod.metadata.creation_timestamp):
        return ""
    restarts = max((each.restart_count for each in pod.status.container_statuses), default=0)
    again = f", restarted {restarts} times" if restarts else ""
    why = podtroubles.trouble(pod)
    return f"its pod is {pod.status.phase or 'not started'} and not ready{again}" + (f": {why}" if why else "")


def _startup_taint(view: View) -> Iterator[Sighting]:
    for name, node in view.nodes.items():
        if name in view.reports and any(taint.key == publishers.STARTUP_TAINT for taint in node.spec.taints):
            yield Sighting(
                node=name,
                seen=f"taint {publishers.STARTUP_TAINT}, although the node has a report",
                repair=repairs.untainted(node, publishers.STARTUP_TAINT),
            )


# Schedulers


def _unserved(view: View) -> Iterator[Sighting]:
    waiting: dict[str, list[Pod]] = {}
    for pod in view.observed.pods:
        if not pod.spec.node_name and not pod.status.is_finished and _is_overlooked(view, pod):
            waiting.setdefault(pod.spec.scheduler_name, []).append(pod)
    known = {name for each in _all_serving(view) for name in each.names} | {DEFAULT_SCHEDULER}
    known |= {pod.spec.scheduler_name for pod in view.observed.pods if _is_decided(pod)}
    for name, pods in sorted(waiting.items()):
        served = name in known
        hint = "" if served else f"; {fields.suggestion(name, sorted(known))}"
        fix = "start the scheduler, and read its log" if served else f"correct spec.schedulerName of the pods{hint}"
        yield Sighting(
            where=f"scheduler name {name}",
            seen=f"no scheduler has looked at pods that wait for it: {_named(pods)}",
            fix=fix,
        )


def _named(pods: Sequence[Pod]) -> str:
    more = f" and {len(pods) - MOST_NAMED} more" * (len(pods) > MOST_NAMED)
    return ", ".join(pod.metadata.full_name for pod in pods[:MOST_NAMED]) + more


def _stock_only(view: View) -> Iterator[Sighting]:
    ours = {name for each in _all_serving(view) if each.program.product == "numalign" for name in each.names}
    found: dict[tuple[str, str], list[Pod]] = {}
    for pod in view.observed.pods:
        use = stockonly.of(pod.spec) if pod.spec.scheduler_name in ours and not pod.status.is_finished else ""
        if use:
            found.setdefault((pod.spec.scheduler_name, use), []).append(pod)
    for (name, use), pods in sorted(found.items()):
        yield Sighting(where=f"scheduler name {name}", seen=f"pods use {use}: {_named(pods)}")


def _is_overlooked(view: View, pod: Pod) -> bool:
    """Every scheduler writes the condition PodScheduled when a pod fits nowhere."""
    if pod.spec.scheduling_gates or pod.metadata.deletion_timestamp:
        return False
    if _is_decided(pod):
        return False
    age = view.age(pod.metadata.creation_timestamp)
    return age is None or age > WAITS


def _is_decided(pod: Pod) -> bool:
    """Whether a scheduler of its name has looked at it."""
    return any(each.type == "PodScheduled" for each in pod.status.conditions)


def _profile_collision(view: View) -> Iterator[Sighting]:
    by_name: dict[str, set[str]] = {}
    for each in _all_serving(view):
        for name in each.names:
            by_name.setdefault(name, set()).add(each.program.title)
    for pod in view.observed.pods:
        # kubeadm's static pod; a Deployment of kube-scheduler is among the programs.
        if pod.metadata.labels.get("component") == "kube-scheduler" and not pod.status.is_finished:
            by_name.setdefault(DEFAULT_SCHEDULER, set()).add("the control plane's kube-scheduler")
    for name, titles in sorted(by_name.items()):
        if len(titles) > 1:
            yield Sighting(where=f"scheduler name {name}", seen=f"served by {' and '.join(sorted(titles))}")


def _lease_collision(view: View) -> Iterator[Sighting]:
    by_lease: dict[tuple[str, str], set[str]] = {}
    for each in _all_serving(view):
        if each.election.leader_elect:
            by_lease.setdefault(each.lease, set()).add(each.program.title)
    static = any(pod.metadata.labels.get("component") == "kube-scheduler" for pod in view.observed.pods)
    if static:
        stock = ("kube-system", configuration.STOCK_LEASE)
        by_lease.setdefault(stock, set()).add("the control plane's kube-scheduler")
    for (namespace, name), titles in sorted(by_lease.items()):
        if len(titles) > 1:
            yield Sighting(where=f"Lease {namespace}/{name}", seen=f"shared by {' and '.join(sorted(titles))}")


def _without_election(view: View) -> Iterator[Sighting]:
    for each in _all_serving(view):
        replicas = each.program.workload.spec.replicas
        if each.program.kind == DEPLOYMENTS.kind and replicas > 1 and not each.election.leader_elect:
            yield Sighting(where=each.program.title, seen=f"{replicas} replicas without leader election")


def _config_invalid(view: View) -> Iterator[Sighting]:
    for each in _all_serving(view):
        if each.problem:
            yield Sighting(where=each.program.title, seen=each.problem)


def _unavailable(view: View) -> Iterator[Sighting]:
    for program in (each for each in found(view.observed) if not each.publishes):
        wanted, there = program.workload.spec.replicas, program.workload.status.available_replicas
        if program.kind != DEPLOYMENTS.kind or there >= wanted:
            continue
        if not view.is_young(program.workload.metadata.creation_timestamp):
            severity = ERROR if there == 0 else WARNING
            why = podtroubles.troubles(_replicas(view, program.workload))
            seen = f"{there} of {wanted} replicas are available" + (f"; {why}" if why else "")
            yield Sighting(where=program.title, seen=seen, severity=severity)


def _replicas(view: View, deployment: Workload) -> Iterator[WatchedPod]:
    """Pods of its ReplicaSets, which are named after it."""
    for pod in view.observed.pods:
        owner = pod.metadata.controller
        if owner is None or owner.kind != "ReplicaSet" or pod.metadata.namespace != deployment.metadata.namespace:
            continue
        if owner.name.rpartition("-")[0] == deployment.metadata.name:
            yield pod


def _leaderless(view: View) -> Iterator[Sighting]:
    for lease in view.observed.leases:
        age = view.age(lease.spec.renew_time)
        if not lease.spec.holder_identity:
            yield Sighting(where=f"Lease {lease.metadata.full_name}", seen="it has no holder")
        elif age is not None and age > max(ABANDONED, 4.0 * (lease.spec.lease_duration_seconds or 0)):
            seen = f"{lease.spec.holder_identity} renewed it {age:.0f} s ago"
            yield Sighting(where=f"Lease {lease.metadata.full_name}", seen=seen)


def _mixed(view: View) -> Iterator[Sighting]:
    by_node: dict[str, set[str]] = {}
    for pod in view.observed.pods:
        if pod.spec.node_name in view.aligned and not pod.status.is_finished and qos.of(pod) == "Guaranteed":
            by_node.setdefault(pod.spec.node_name, set()).add(pod.spec.scheduler_name)
    for name, schedulers in by_node.items():
        if len(schedulers) > 1:
            yield Sighting(node=name, seen=f"Guaranteed pods of {' and '.join(sorted(schedulers))}")


def _versions_differ(view: View) -> Iterator[Sighting]:
    by_version: dict[str, set[str]] = {}
    for program in found(view.observed):
        if program.product == "numalign" and (version := _version(program.workload)):
            by_version.setdefault(version, set()).add(program.title)
    if len(by_version) > 1:
        parts = (f"{version} ({', '.join(sorted(titles))})" for version, titles in sorted(by_version.items()))
        yield Sighting(where="the cluster", seen="; ".join(parts))


def _version(workload: Workload) -> str:
    labels = {**workload.metadata.labels, **workload.spec.template.metadata.labels}
    tags: Iterable[str] = (_image_tag(each.image) for each in workload.spec.template.spec.containers)
    return labels.get(VERSION_LABEL) or next(filter(None, tags), "")


CHECKS: Final = (
    Check(
        id="publisher-missing",
        severity=ERROR,
        title="Nothing publishes topology reports",
        why="A NUMA-aware scheduler alone does nothing: agents on the nodes have to report zones.",
        fix="install the agent: numalign deploy apply, or the Helm chart",
        needs=(NODES.plural, REPORTS[0].plural, DAEMON_SETS.plural),
        find=_no_publisher,
    ),
    Check(
        id="agent-not-on-node",
        severity=ERROR,
        title="No publisher is meant for a node",
        why="The node gets no report, so its zones stay unknown.",
        fix="widen the node selector of a publisher's DaemonSet, or leave the node out with -l",
        needs=(NODES.plural, DAEMON_SETS.plural),
        find=_not_on_node,
    ),
    Check(
        id="agent-not-tolerating",
        severity=ERROR,
        title="A taint keeps the publisher off a node",
        why="The node gets no report, so its zones stay unknown.",
        fix="add the toleration to the publisher's DaemonSet; operator Exists without a key tolerates every taint",
        needs=(NODES.plural, DAEMON_SETS.plural),
        find=_tainted,
    ),
    Check(
        id="agent-not-ready",
        severity=ERROR,
        title="The publisher of a node does not run",
        why="The report of the node is missing or becomes old.",
        fix="read its log and its Events: kubectl describe pod, kubectl logs",
        needs=(NODES.plural, DAEMON_SETS.plural, PODS.plural),
        find=_not_ready,
    ),
    Check(
        id="startup-taint-left",
        severity=WARNING,
        title="The start-up taint is still there",
        why="No pod is scheduled on the node, although its report exists.",
        fix="remove the taint (--fix), and run agents with --remove-startup-taint and the right to patch their Node",
        needs=(NODES.plural, REPORTS[0].plural),
        find=_startup_taint,
    ),
    Check(
        id="scheduler-unserved",
        severity=ERROR,
        title="Pods wait for a scheduler that does not exist or does not run",
        why="The pods stay Pending without any Event.",
        fix="start the scheduler, or correct spec.schedulerName of the pods",
        needs=(PODS.plural,),
        find=_unserved,
    ),
    Check(
        id="pods-need-kube-scheduler",
        severity=WARNING,
        title="Pods of numalign need kube-scheduler",
        why="kube-scheduler allocates resource claims and places scheduling groups as a whole; numalign does neither.",
        fix="set spec.schedulerName of these pods to a name that a kube-scheduler serves",
        needs=(PODS.plural,),
        find=_stock_only,
    ),
    Check(
        id="scheduler-profile-collision",
        severity=ERROR,
        title="Two schedulers serve one name",
        why="Both bind the same pods, each without knowing of the other's decisions.",
        fix="give each scheduler its own profile name, or remove one",
        needs=(DEPLOYMENTS.plural, CONFIG_MAPS.plural, PODS.plural),
        find=_profile_collision,
    ),
    Check(
        id="scheduler-lease-collision",
        severity=ERROR,
        title="Two schedulers use one Lease",
        why="Only one of them leads, and the pods of the other stay Pending.",
        fix="set leaderElection.resourceName to a name of its own",
        needs=(DEPLOYMENTS.plural, CONFIG_MAPS.plural, PODS.plural),
        find=_lease_collision,
    ),
    Check(
        id="scheduler-without-election",
        severity=ERROR,
        title="Replicas of a scheduler do not elect a leader",
        why="All replicas bind pods at the same time, each without knowing of the others' decisions.",
        fix="set leaderElection.leaderElect to true, or replicas to 1",
        needs=(DEPLOYMENTS.plural, CONFIG_MAPS.plural),
        find=_without_election,
    ),
    Check(
        id="scheduler-config-invalid",
        severity=ERROR,
        title="The configuration of a scheduler cannot be read",
        why="The scheduler does not start, or not with the profiles that are meant.",
        fix="correct the ConfigMap",
        needs=(DEPLOYMENTS.plural, CONFIG_MAPS.plural),
        find=_config_invalid,
    ),
    Check(
        id="scheduler-unavailable",
        severity=ERROR,
        title="A scheduler has fewer replicas than it should",
        why="With no replica its pods stay Pending; with fewer, the next failure stops scheduling.",
        fix="read the Events and logs of its pods",
        needs=(DEPLOYMENTS.plural,),
        find=_unavailable,
    ),
    Check(
        id="scheduler-leaderless",
        severity=ERROR,
        title="No scheduler leads",
        why="Replicas without the Lease wait, and pods stay Pending.",
        fix="read the scheduler's log: it cannot reach the API server, or may not update the Lease",
        needs=(LEASES.plural,),
        find=_leaderless,
    ),
    Check(
        id="schedulers-mixed",
        severity=INFO,
        title="Several schedulers place Guaranteed pods on one aligned node",
        why="They race: a pod of the one may take the zone that the other has promised.",
        fix="partition the nodes by taints or labels, or let one scheduler serve all names as profiles",
        needs=(NODES.plural, PODS.plural),
        find=_mixed,
    ),
    Check(
        id="program-versions-differ",
        severity=WARNING,
        title="Agents and schedulers have different versions",
        why="An older scheduler does not read the newer attributes of a report, and predicts less exactly.",
        fix="finish the upgrade: schedulers first, then agents",
        needs=(DAEMON_SETS.plural, DEPLOYMENTS.plural),
        find=_versions_differ,
    ),
)

"""The scheduler's metrics: kube-scheduler's under their own names, and ours with the prefix `numalign_`.

`main` makes them once. `cycle`, `binder` and `intake` count in `Metrics`; `Gauges` reads queue, cluster, engine,
client and lease when metrics are scraped. The resource metrics of pods are served under /metrics/resources by the
leader only, so that nothing is counted twice. Names, labels and buckets are kube-scheduler's (kube-scheduler spec
6.5, 6.6); docs/use/scheduler-metrics.md describes each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from numalign import __version__
from numalign.api.decode.quantity import NANO
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import FINISHED, Pod, ResourceList
from numalign.kube.transport.transport import Metrics as ClientMetrics
from numalign.process import metrics
from numalign.process.metrics import Gauge, Read, Registry, Sample
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.queue.queue import SchedulingQueue

Asked = Callable[[], Iterable[Sample]]


class Gauges:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        metrics.register_process_metrics(registry)
        self._gauge("numalign_build_info", "Build information, always 1.", ("version",), lambda: [((__version__,), 1)])

    def queue(self, queue: SchedulingQueue, now: Callable[[], float]) -> None:
        self._gauge(
            "numalign_oldest_pending_pod_seconds",
            "Age of the pod that has been pending for longest, by queue; 0 if there is none.",
            ("queue",),
            lambda: _ages(queue, now()),
        )
        self._gauge("scheduler_pending_pods", "Number of pending pods, by queue.", ("queue",), lambda: _pending(queue))
        self._gauge(
            "scheduler_unschedulable_pods",
            "Number of unschedulable pods, by plugin that rejected them.",
            ("plugin", "profile"),
            lambda: queue.refusing().items(),
        )
        self._count(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues, by event and queue.",
            ("queue", "event"),
            lambda: queue.incoming.items(),
        )
        self._count(
            "scheduler_pod_scheduled_after_flush_total",
            "Number of pods bound after the periodic flush of unschedulable pods: no event woke them.",
            (),
            lambda: [((), queue.bound_after_flush)],
        )
        self._gauge(
            "scheduler_inflight_events",
            "Number of cluster events kept for pods in flight.",
            ("event",),
            lambda: _by_name(queue.flights.kept()),
        )
        self._count(
            "numalign_queueing_hints_total",
            "Number of queueing hints evaluated, by plugin, event and result.",
            ("plugin", "event", "hint"),
            lambda: queue.hints().items(),
        )

    def cluster(self, cluster: Cluster) -> None:
        engine = cluster.engine
        self._gauge(
            "scheduler_cache_size",
            "Number of nodes, pods and assumed pods in the scheduler cache.",
            ("type",),
            lambda: _sizes(cluster),
        )
        self._gauge(
            "numalign_nodes",
            "Number of nodes, by state of their topology report: present, deleted or missing.",
            ("report",),
            lambda: _by_name(reports(cluster)),
        )
        self._gauge(
            "numalign_pods",
            "Number of pods on nodes, by source of their zones.",
            ("known",),
            lambda: _by_name(engine.statistics().pods_by_source),
        )
        self._gauge(
            "numalign_zones",
            "Number of NUMA zones, by extended resource and number of its devices that are free.",
            ("resource", "free"),
            lambda: [
                ((resource, str(free)), zones)
                for resource, found in engine.free_devices().items()
                for free, zones in found.zones.items()
            ],
        )
        self._gauge(
            "numalign_devices_stranded",
            "Number of free devices in NUMA zones without a free CPU, by extended resource.",
            ("resource",),
            lambda: [((resource,), found.stranded) for resource, found in engine.free_devices().items()],
        )
        self._count(
            "numalign_prediction_divergence_total",
            "Number of differences between predicted and reported placements, by kind.",
            ("kind",),
            lambda: _by_name(engine.statistics().divergences),
        )
        self._count(
            "numalign_model_placements_total",
            "Number of pods placed by the row model or the kubelet model, by path.",
            ("path",),
            lambda: _by_name(engine.statistics().model_placements),
        )
        self._count(
            "numalign_rows_evaluated_total",
            "Number of verdicts (one node for one pod shape) computed.",
            (),
            lambda: [((), engine.statistics().rows_evaluated)],
        )
        self._count(
            "numalign_engine_problems_total",
            "Number of objects that the engine skipped or repaired, by problem.",
            ("problem",),
            lambda: _by_name(engine.statistics().problems),
        )
        self._gauge(
            "numalign_shapes", "Number of distinct pod shapes seen.", (), lambda: [((), len(engine.known_shapes))]
        )

    def client(self, client: ClientMetrics) -> None:
        self._count(
            "rest_client_requests_total",
            "Number of HTTP requests, by verb and status code.",
            ("verb", "code"),
            lambda: client.requests.items(),
        )
        self._count(
            "numalign_api_seconds_total",
            "Time spent waiting for the API server, by verb.",
            ("verb",),
            lambda: _by_name(client.seconds),
        )
        self._count(
            "numalign_api_retries_total",
            "Number of repeated requests, by verb.",
            ("verb",),
            lambda: _by_name(client.retries),
        )
        self._count(
            "numalign_api_throttled_seconds_total",
            "Time spent waiting for the client-side rate limit.",
            (),
            lambda: [((), client.limited_seconds)],
        )
        self._count(
            "numalign_relists_total",
            "Number of lists of a resource, the first one included.",
            ("resource",),
            lambda: _by_name(client.relists),
        )
        self._count(
            "numalign_watch_events_total",
            "Number of watch events, by resource and type.",
            ("resource", "type"),
            lambda: client.watch_events.items(),
        )
        self._count(
            "numalign_objects_unreadable_total",
            "Number of objects that could not be decoded.",
            ("resource",),
            lambda: _by_name(client.unreadable),
        )
        self._count(
            "numalign_events_dropped_total", "Number of Events dropped.", (), lambda: [((), client.events_dropped)]
        )

    def leadership(self, lease: str, leads: Callable[[], bool]) -> None:
        self._gauge(
            "leader_election_master_status",
            "1 if this replica is the leader, else 0.",
            ("name",),
            lambda: [((lease,), int(leads()))],
        )

    def _gauge(self, name: str, words: str, labels: tuple[str, ...], asked: Asked) -> None:
        self._registry.read(Read("gauge", name, words, labels), asked)

    def _count(self, name: str, words: str, labels: tuple[str, ...], asked: Asked) -> None:
        self._registry.read(Read("counter", name, words, labels), asked)


def _by_name(counts: Mapping[Any, float]) -> list[Sample]:
    return [((str(name),), count) for name, count in counts.items()]


def _pending(queue: SchedulingQueue) -> list[Sample]:
    return [((name,), len(pods)) for name, pods in queue.pending().items()]


def _ages(queue: SchedulingQueue, now: float) -> list[Sample]:
    pools = queue.pending().items()
    return [((name,), max((now - each.added for each in pods), default=0.0)) for name, pods in pools]


def reports(cluster: Cluster) -> dict[str, int]:
    """Numbers of nodes by state of their report."""
    missing, deleted = len(cluster.world.unreported), len(cluster.deleted_reports)
    return {"present": cluster.nodes - missing - deleted, "deleted": deleted, "missing": missing}


def _sizes(cluster: Cluster) -> list[Sample]:
    sizes = {"nodes": cluster.nodes, "pods": cluster.pods, "assumed_pods": len(cluster.assumed)}
    return _by_name(sizes)


SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"
OURS: Final = "numalign"
OTHERS: Final = "others"
"""Who placed a rejected pod: a profile of this scheduler, or another scheduler."""
MOST_ATTEMPTS: Final = 15
ATTEMPT_BOUNDS: Final = metrics.exponential(0.001, 2, 15)
RESULT: Final = ("result", "profile")
OUTCOME: Final = ("outcome",)


class Metrics:
    def __init__(self) -> None:
        self.registry = made = Registry()
        self.readings = Gauges(made)
        self.attempt_seconds = made.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency, including binding.",
            ATTEMPT_BOUNDS,
            RESULT,
        )
        made.read(
            Read(
                "counter",
                "scheduler_schedule_attempts_total",
                "Number of attempts to schedule pods, by result.",
                RESULT,
            ),
            self.attempt_seconds.counts,
        )
        self.algorithm_seconds = made.histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Scheduling algorithm latency.", ATTEMPT_BOUNDS
        )
        self.sli_seconds = made.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first attempt until it is bound, by number of attempts.",
            metrics.exponential(0.01, 2, 20),
            ("attempts",),
        )
        self.pod_attempts = made.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            metrics.exponential(1, 2, 5),
        )
        self.preemption_attempts = made.counter("scheduler_preemption_attempts_total", "Number of preemption attempts.")
        self.preemption_victims = made.histogram(
            "scheduler_preemption_victims", "Number of victims selected per preemption.", metrics.exponential(1, 2, 7)
        )
        self.phase_seconds = made.histogram(
            "numalign_phase_duration_seconds",
            "Duration of the phases of choosing a node, sampled ten times per second at most.",
            metrics.exponential(0.00001, 2, 20),
            ("phase",),
        )
        self.placed = made.counter(
            "numalign_pods_placed_total", "Number of pods bound, by expected alignment.", ("alignment",)
        )
        self.skipped = made.counter(
            "numalign_objects_left_out_total",
            "Number of watch events skipped because the object could not be used.",
            ("resource",),
        )
        self.rejections = made.counter(
            "numalign_pods_rejected_total",
            "Number of pods rejected by a kubelet, by reason and scheduler.",
            ("reason", "placed_by"),
        )
        self.binding_seconds = made.histogram(
            "numalign_binding_duration_seconds", "Binding latency, by outcome.", ATTEMPT_BOUNDS, OUTCOME
        )
        self.extender_seconds = made.histogram(
            "numalign_extender_request_duration_seconds",
            "Duration of requests of the scheduler extender protocol, by verb and status code.",
            metrics.exponential(0.0001, 2, 15),
            ("verb", "code"),
        )
        made.read(
            Read("counter", "numalign_bindings_total", "Number of bindings, by outcome.", OUTCOME),
            self.binding_seconds.counts,
        )

    def bound(self, attempts: int, seconds: float) -> None:
        self.pod_attempts.observe(number=attempts)
        label = str(attempts) if attempts < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"
        self.sli_seconds.observe(label, number=seconds)

    def chose(self, seconds: float, phases: Mapping[str, float]) -> None:
        """Observes the duration of a choice. `phases`: empty unless they were measured."""
        self.algorithm_seconds.observe(number=seconds)
        for phase, part in phases.items():
            self.phase_seconds.observe(phase, number=part)

    def watch(self, queue: SchedulingQueue, cluster: Cluster, client: ClientMetrics, now: Callable[[], float]) -> None:
        """Registers gauges that are read when metrics are scraped."""
        self.readings.queue(queue, now)
        self.readings.cluster(cluster)
        self.readings.client(client)


LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
REQUEST: Final = Gauge(
    "kube_pod_resource_request", "Resources requested by pods, with the unit of the resource.", LABELS
)
LIMIT: Final = Gauge("kube_pod_resource_limit", "Resource limits of pods, with the unit of the resource.", LABELS)
STORAGE: Final = "storage"
ATTACHABLE: Final = "attachable-volumes-"


def resource_lines(pods: Iterable[Pod]) -> Iterator[str]:
    """The metrics of pods as text, one family after the other."""
    counted = [pod for pod in pods if not pod.spec.node_name or pod.status.phase not in FINISHED]
    for family, amounts in ((REQUEST, requests.effective), (LIMIT, requests.capped)):
        yield from family.head()
        for pod in counted:
            yield from _of_pod(family, pod, amounts(pod))


def _of_pod(family: Gauge, pod: Pod, amounts: ResourceList) -> Iterator[str]:
    meta, spec = pod.metadata, pod.spec
    who = (meta.namespace, meta.name, spec.node_name, spec.scheduler_name, str(spec.priority))
    for resource, amount in amounts.items():
        if amount.nanos:
            yield family.line((*who, resource, unit(resource)), amount.nanos / NANO)


def unit(resource: str) -> str:
    if resource == resourcenames.CPU:
        return "cores"
    if resource == STORAGE or resourcenames.is_bytes(resource):
        return "bytes"
    return "integer" if resource.startswith(ATTACHABLE) else ""

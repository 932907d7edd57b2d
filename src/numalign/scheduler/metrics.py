"""What the scheduler counts: the stock scheduler's metrics under their own names, and ours beside them.

Made once by `main`; `cycle`, `binding` and `intake` count in it. Names, labels and buckets are those that dashboards
look for (kube-scheduler spec 6.6); ours begin with numalign."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from numalign.kube.metrics import Metrics as ClientMetrics
from numalign.process import metrics
from numalign.process.metrics import Read, Registry, Sample
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.queue import Queue

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"
MOST_ATTEMPTS: Final = 15
ATTEMPT_BOUNDS: Final = metrics.exponential(0.001, 2, 15)


class Metrics:
    def __init__(self) -> None:
        self.registry = made = Registry()
        self.attempts = made.counter(
            "scheduler_schedule_attempts_total", "Attempts to schedule pods, by result.", ("result", "profile")
        )
        self.attempt_seconds = made.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of an attempt, from its start until the pod is bound or refused.",
            ATTEMPT_BOUNDS,
            ("result", "profile"),
        )
        self.algorithm_seconds = made.histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Time to choose a node.", ATTEMPT_BOUNDS
        )
        self.sli_seconds = made.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from when a pod could first be tried until it was bound, by number of attempts.",
            metrics.exponential(0.01, 2, 20),
            ("attempts",),
        )
        self.pod_attempts = made.histogram(
            "scheduler_pod_scheduling_attempts", "Attempts until a pod was bound.", metrics.exponential(1, 2, 5)
        )
        self.odd = made.counter(
            "numalign_objects_left_out_total", "Changes of objects that nothing could be made of.", ("resource",)
        )
        self.rejections = made.counter(
            "numalign_pods_rejected_total", "Pods that a node turned away after we placed them.", ("reason",)
        )
        self.binds = made.counter("numalign_bindings_total", "Bindings by outcome.", ("outcome",))
        self.binding_seconds = made.histogram(
            "numalign_binding_duration_seconds", "Time of a binding, by outcome.", ATTEMPT_BOUNDS, ("outcome",)
        )

    def bound(self, attempts: int, seconds: float) -> None:
        self.pod_attempts.observe(number=attempts)
        label = str(attempts) if attempts < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"
        self.sli_seconds.observe(label, number=seconds)

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        self.attempts.add(result, profile)
        self.attempt_seconds.observe(result, profile, number=seconds)

    def watch(self, queue: Queue, cluster: Cluster, client: ClientMetrics) -> None:
        """What others count is read when somebody looks."""
        self._gauge("scheduler_pending_pods", "Pods that wait.", ("queue",), lambda: _pending(queue))
        self._gauge(
            "scheduler_unschedulable_pods",
            "Waiting pods by plugin that refused them.",
            ("plugin", "profile"),
            lambda: queue.refusing().items(),
        )
        self._count(
            "scheduler_queue_incoming_pods_total",
            "Pods that came into a pool.",
            ("queue", "event"),
            lambda: queue.incoming.items(),
        )
        self._count(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods bound after being tried for no known reason: a wake-up was missed.",
            (),
            lambda: [((), queue.bound_after_flush)],
        )
        self._gauge("scheduler_cache_size", "What is known of the cluster.", ("type",), lambda: _sizes(cluster))
        self._engine(cluster)
        self._count(
            "rest_client_requests_total",
            "Calls to the API server by verb and code.",
            ("verb", "code"),
            lambda: client.requests.items(),
        )
        self._count("numalign_events_dropped_total", "Events not written.", (), lambda: [((), client.events_dropped)])

    def _engine(self, cluster: Cluster) -> None:
        engine = cluster.engine
        self._count(
            "numalign_engine_problems_total",
            "What the engine left out or put right.",
            ("problem",),
            lambda: [((name,), count) for name, count in engine.problems.items()],
        )
        self._gauge("numalign_shapes", "Kinds of pods met so far.", (), lambda: [((), len(engine.shapes.all))])

    def _gauge(self, name: str, words: str, labels: tuple[str, ...], asked: Callable[[], Iterable[Sample]]) -> None:
        self.registry.read(Read("gauge", name, words, labels), asked)

    def _count(self, name: str, words: str, labels: tuple[str, ...], asked: Callable[[], Iterable[Sample]]) -> None:
        self.registry.read(Read("counter", name, words, labels), asked)


def _pending(queue: Queue) -> list[Sample]:
    return [((name,), len(pods)) for name, pods in queue.pending().items()]


def _sizes(cluster: Cluster) -> list[Sample]:
    sizes = {"nodes": cluster.nodes, "pods": cluster.pods, "assumed_pods": len(cluster.assumed)}
    return [((name,), count) for name, count in sizes.items()]

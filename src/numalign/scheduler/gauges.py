"""Numbers that others keep anyway, read when somebody looks at the metrics: queue, cluster, engine, API server, lease.

`metrics` registers them all. Names are the stock scheduler's where it has them (kube-scheduler spec 6.6);
docs/use/scheduler-metrics.md says what each means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numalign import __version__
from numalign.kube.transport.transport import Metrics as ClientMetrics
from numalign.process import metrics
from numalign.process.metrics import Read, Registry, Sample
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.queue.queue import Queue

Asked = Callable[[], Iterable[Sample]]


class Readings:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        metrics.register_process_metrics(registry)
        self._gauge("numalign_build_info", "1, with what runs.", ("version",), lambda: [((__version__,), 1)])

    def queue(self, queue: Queue) -> None:
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
        self._gauge(
            "scheduler_inflight_events",
            "Events kept for pods that are being tried or bound.",
            ("event",),
            lambda: _by_name(queue.flights.kept()),
        )
        self._count(
            "numalign_queueing_hints_total",
            "Questions whether an event may help a parked pod, by answer.",
            ("plugin", "event", "hint"),
            lambda: queue.hints().items(),
        )

    def cluster(self, cluster: Cluster) -> None:
        engine = cluster.engine
        self._gauge("scheduler_cache_size", "What is known of the cluster.", ("type",), lambda: _sizes(cluster))
        self._gauge(
            "numalign_pods",
            "Pods on nodes, by how it is known in which zones they sit.",
            ("known",),
            lambda: _by_name(engine.statistics().pods_by_source),
        )
        self._count(
            "numalign_prediction_divergence_total",
            "Contradictions between what was predicted and what a node said, by kind.",
            ("kind",),
            lambda: _by_name(engine.statistics().divergences),
        )
        self._count(
            "numalign_model_placements_total",
            "Pods placed by the model rather than by numbers, by the way in which it was found.",
            ("path",),
            lambda: _by_name(engine.statistics().model_placements),
        )
        self._count(
            "numalign_rows_evaluated_total",
            "Verdicts (one node for one shape) that were worked out, because one of them was new or changed.",
            (),
            lambda: [((), engine.statistics().rows_evaluated)],
        )
        self._count(
            "numalign_engine_problems_total",
            "What the engine left out or put right.",
            ("problem",),
            lambda: _by_name(engine.statistics().problems),
        )
        self._gauge("numalign_shapes", "Kinds of pods met so far.", (), lambda: [((), len(engine.known_shapes))])

    def client(self, client: ClientMetrics) -> None:
        self._count(
            "rest_client_requests_total",
            "Calls to the API server by verb and code.",
            ("verb", "code"),
            lambda: client.requests.items(),
        )
        self._count(
            "numalign_api_seconds_total",
            "Time spent waiting for answers of the API server.",
            ("verb",),
            lambda: _by_name(client.seconds),
        )
        self._count("numalign_api_retries_total", "Calls sent again.", ("verb",), lambda: _by_name(client.retries))
        self._count(
            "numalign_api_throttled_seconds_total",
            "Time spent waiting for our own limit on calls.",
            (),
            lambda: [((), client.limited_seconds)],
        )
        self._count(
            "numalign_relists_total", "Full looks at a resource.", ("resource",), lambda: _by_name(client.relists)
        )
        self._count(
            "numalign_watch_events_total",
            "Events of watches; those that were known already are duplicates.",
            ("resource", "type"),
            lambda: client.watch_events.items(),
        )
        self._count(
            "numalign_objects_unreadable_total",
            "Objects that could not be read at all.",
            ("resource",),
            lambda: _by_name(client.unreadable),
        )
        self._count("numalign_events_dropped_total", "Events not written.", (), lambda: [((), client.events_dropped)])

    def leadership(self, lease: str, leads: Callable[[], bool]) -> None:
        self._gauge(
            "leader_election_master_status",
            "1 for the leader, 0 for those in waiting.",
            ("name",),
            lambda: [((lease,), int(leads()))],
        )

    def _gauge(self, name: str, words: str, labels: tuple[str, ...], asked: Asked) -> None:
        self._registry.read(Read("gauge", name, words, labels), asked)

    def _count(self, name: str, words: str, labels: tuple[str, ...], asked: Asked) -> None:
        self._registry.read(Read("counter", name, words, labels), asked)


def _by_name(counts: Mapping[Any, float]) -> list[Sample]:
    return [((str(name),), count) for name, count in counts.items()]


def _pending(queue: Queue) -> list[Sample]:
    return [((name,), len(pods)) for name, pods in queue.pending().items()]


def _sizes(cluster: Cluster) -> list[Sample]:
    sizes = {"nodes": cluster.nodes, "pods": cluster.pods, "assumed_pods": len(cluster.assumed)}
    return _by_name(sizes)

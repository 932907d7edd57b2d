"""What the scheduler counts: the stock scheduler's metrics under their own names, and ours beside them.

Made once by `main`; `cycle`, `binding` and `intake` count in it. Names, labels and buckets are those that dashboards
look for (kube-scheduler spec 6.6); ours begin with numalign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from numalign.kube.metrics import Metrics as ClientMetrics
from numalign.process import metrics
from numalign.process.metrics import Read, Registry
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.gauges import Gauges
from numalign.scheduler.queue.queue import SchedulingQueue

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"
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
            "Time of an attempt, from its start until the pod is bound or refused.",
            ATTEMPT_BOUNDS,
            RESULT,
        )
        made.read(
            Read("counter", "scheduler_schedule_attempts_total", "Attempts to schedule pods, by result.", RESULT),
            self.attempt_seconds.counts,
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
        self.preemption_attempts = made.counter(
            "scheduler_preemption_attempts_total", "Pods without a node for which it was asked whom to evict."
        )
        self.preemption_victims = made.histogram(
            "scheduler_preemption_victims", "Pods evicted for one pod.", metrics.exponential(1, 2, 7)
        )
        self.phase_seconds = made.histogram(
            "numalign_phase_duration_seconds",
            "Time of the phases of a choice, of ten choices a second at most.",
            metrics.exponential(0.00001, 2, 20),
            ("phase",),
        )
        self.placed = made.counter(
            "numalign_pods_placed_total", "Pods bound, by how the kubelet will align them.", ("alignment",)
        )
        self.odd = made.counter(
            "numalign_objects_left_out_total", "Changes of objects that nothing could be made of.", ("resource",)
        )
        self.rejections = made.counter(
            "numalign_pods_rejected_total", "Pods that a node turned away, by who placed them.", ("reason", "placed_by")
        )
        self.binding_seconds = made.histogram(
            "numalign_binding_duration_seconds", "Time of a binding, by outcome.", ATTEMPT_BOUNDS, OUTCOME
        )
        made.read(
            Read("counter", "numalign_bindings_total", "Bindings by outcome.", OUTCOME), self.binding_seconds.counts
        )

    def bound(self, attempts: int, seconds: float) -> None:
        self.pod_attempts.observe(number=attempts)
        label = str(attempts) if attempts < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"
        self.sli_seconds.observe(label, number=seconds)

    def chose(self, seconds: float, phases: Mapping[str, float]) -> None:
        """`phases`: empty, unless they were measured."""
        self.algorithm_seconds.observe(number=seconds)
        for phase, part in phases.items():
            self.phase_seconds.observe(phase, number=part)

    def watch(self, queue: SchedulingQueue, cluster: Cluster, client: ClientMetrics) -> None:
        """What others count is read when somebody looks."""
        self.readings.queue(queue)
        self.readings.cluster(cluster)
        self.readings.client(client)

"""What the agent counts, under names that begin with numalign_agent, and what the system knows of its process.

Made once by `cycle`, which counts in it; `serving` shows it. Ages are asked when somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from numalign.kube.transport.transport import Metrics as ClientMetrics
from numalign.process import metrics
from numalign.process.metrics import Read, Registry

SECONDS: Final = metrics.exponential(0.001, 2, 14)


class Metrics:
    def __init__(self) -> None:
        self.registry = made = Registry()
        metrics.register_process_metrics(made)
        self.looks = made.counter(
            "numalign_agent_looks_total", "Looks at the node, by what asked for them.", ("reason",)
        )
        self.seconds = made.histogram("numalign_agent_look_seconds", "How long looks took.", SECONDS)
        self.reports = made.counter(
            "numalign_agent_reports_total", "Reports made: written, heartbeat, equal, stood back, failed.", ("result",)
        )
        self.failures = made.counter(
            "numalign_agent_write_failures_total",
            "Reports that the API server did not take, by status code.",
            ("code",),
        )
        self.podresources = made.counter(
            "numalign_agent_podresources_errors_total", "Questions that the kubelet did not answer.", ("kind",)
        )
        self.inconsistencies = made.counter(
            "numalign_agent_inconsistencies_total",
            "Looks after which the kubelet's answers still contradicted its checkpoints or its configuration.",
        )
        self.withheld = made.counter("numalign_agent_withheld_total", "Looks that found too little to report anything.")
        self.problems = made.gauge("numalign_agent_problems", "Things that were odd in the last look.")
        self.stands_back = made.gauge("numalign_agent_stands_back", "1 while another publisher writes the report.")
        self.pruned = made.gauge("numalign_agent_pruned_attributes", "Attributes that the API server does not keep.")

    def watch(self, age: Callable[[], float | None], client: ClientMetrics) -> None:
        """What is counted elsewhere."""
        known = Read("gauge", "numalign_agent_report_age_seconds", "Since the report was last known to be right.", ())
        self.registry.read(known, lambda: [] if (seconds := age()) is None else [((), seconds)])
        requests = Read("counter", "rest_client_requests_total", "Calls of the API server.", ("verb", "code"))
        self.registry.read(requests, lambda: [(labels, float(count)) for labels, count in client.requests.items()])

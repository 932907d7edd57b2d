"""The operator's metrics. `controller` counts, `main` serves them."""

from __future__ import annotations

from typing import Final

from numalign.deploy.operator import kinds
from numalign.deploy.operator.kinds import Status
from numalign.deploy.operator.workqueue import WorkQueue
from numalign.kube.transport.transport import Metrics as ClientMetrics
from numalign.process import metrics
from numalign.process.metrics import Read, Registry

SECONDS: Final = metrics.exponential(0.001, 2, 15)


class Metrics:
    def __init__(self) -> None:
        self.registry = made = Registry()
        metrics.register_process_metrics(made)
        self._reconciles = made.counter(
            "numalign_operator_reconciles_total",
            "Number of reconciliations by resource and result: success, error.",
            ("controller", "result"),
        )
        self._seconds = made.histogram(
            "numalign_operator_reconcile_seconds", "Duration of reconciliations in seconds.", SECONDS, ("controller",)
        )
        self._writes = made.counter(
            "numalign_operator_writes_total", "Number of objects that the operator wrote.", ("verb", "kind")
        )
        self._conditions = made.gauge(
            "numalign_operator_condition",
            "1 if the condition of the resource is True, otherwise 0.",
            ("resource", "type"),
        )
        self._nodes = made.gauge("numalign_operator_group_nodes", "Number of nodes of a node group.", ("group",))
        self._ready = made.gauge(
            "numalign_operator_group_ready", "Number of nodes of a node group whose agent is ready.", ("group",)
        )

    def watch(self, queue: WorkQueue[str], client: ClientMetrics) -> None:
        """Registers values that other components count."""
        adds = Read("counter", "workqueue_adds_total", "Number of times that a resource was queued.", ("name",))
        self.registry.read(adds, lambda: [((key,), float(count)) for key, count in queue.adds.items()])
        retries = Read("counter", "workqueue_retries_total", "Number of retries after a failure.", ("name",))
        self.registry.read(retries, lambda: [((key,), float(count)) for key, count in queue.retries.items()])
        depth = Read("gauge", "workqueue_depth", "Number of resources that wait to be reconciled.", ())
        self.registry.read(depth, lambda: [((), float(len(queue)))])
        requests = Read(
            "counter",
            "rest_client_requests_total",
            "Number of calls to the API server, by verb and code.",
            ("verb", "code"),
        )
        self.registry.read(requests, lambda: [(labels, float(count)) for labels, count in client.requests.items()])

    def reconciled(self, plural: str, started: float, ended: float, failed: bool) -> None:
        self._reconciles.add(plural, "error" if failed else "success")
        self._seconds.observe(plural, number=ended - started)

    def wrote(self, verb: str, kind: str) -> None:
        self._writes.add(verb, kind)

    def state(self, key: str, status: Status) -> None:
        for each in kinds.conditions(status):
            self._conditions.set(key, each.type, to=float(each.status == "True"))
        if key.startswith(kinds.OPERATORS.plural):
            shown = status.get("nodeGroups") or []
            self._nodes.values = {(each["selector"],): float(each["nodes"]) for each in shown}
            self._ready.values = {(each["selector"],): float(each["ready"]) for each in shown}

    def forget(self, key: str) -> None:
        """The resource was deleted."""
        for labels in [labels for labels in self._conditions.values if labels[0] == key]:
            del self._conditions.values[labels]
        if key.startswith(kinds.OPERATORS.plural):
            self._nodes.values, self._ready.values = {}, {}

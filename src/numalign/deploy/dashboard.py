"""A Grafana dashboard about numalign's programs. `objects.cluster` puts it into a ConfigMap, where a sidecar of Grafana
finds it; the chart has a copy, which `tools/chart.py` writes. The metrics are those of docs/use/scheduler-metrics.md
and docs/use/agent.md."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

Object = dict[str, Any]
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS: Final = 2
WIDTH: Final = 12
HEIGHT: Final = 8


class Panel(Struct, frozen=True):
    title: str
    expression: str
    legend: str
    unit: str = "short"


PANELS: Final = (
    Panel(
        "Attempts per second, by result",
        "sum by (result) (rate(scheduler_schedule_attempts_total[5m]))",
        "{{result}}",
        "ops",
    ),
    Panel("Pending pods", "sum by (queue) (scheduler_pending_pods)", "{{queue}}"),
    Panel(
        "Time from the first try to the binding, 99th percentile",
        "histogram_quantile(0.99, sum by (le) (rate(scheduler_pod_scheduling_sli_duration_seconds_bucket[5m])))",
        "p99",
        "s",
    ),
    Panel(
        "Pods placed per second, by alignment",
        "sum by (alignment) (rate(numalign_pods_placed_total[5m]))",
        "{{alignment}}",
    ),
    Panel("Nodes, by their report", "max by (report) (numalign_nodes)", "{{report}}"),
    Panel("Pods that kubelets rejected", "sum by (reason) (increase(numalign_pods_rejected_total[1h]))", "{{reason}}"),
    Panel(
        "Predictions that reports contradict",
        "sum by (kind) (increase(numalign_prediction_divergence_total[1h]))",
        "{{kind}}",
    ),
    Panel("Age of the oldest reports", "topk(5, numalign_agent_report_age_seconds)", "{{pod}}", "s"),
    Panel(
        "Age of the pod that waits longest",
        "max by (queue) (numalign_oldest_pending_pod_seconds)",
        "{{queue}}",
        "s",
    ),
    Panel(
        "NUMA zones, by free devices",
        "max by (resource, free) (numalign_zones)",
        "{{resource}}: {{free}} free",
    ),
    Panel("Free devices in zones without a free CPU", "max by (resource) (numalign_devices_stranded)", "{{resource}}"),
    Panel("Leaders", "sum by (pod) (leader_election_master_status)", "{{pod}}"),
    Panel(
        "Writes of reports that failed", "sum by (code) (increase(numalign_agent_write_failures_total[1h]))", "{{code}}"
    ),
)


def dashboard() -> Object:
    return {
        "uid": "numalign",
        "title": "numalign",
        "tags": ["kubernetes", "numa", "scheduler"],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(number, each) for number, each in enumerate(PANELS)],
    }


def _panel(number: int, panel: Panel) -> Object:
    row, column = divmod(number, COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [{"refId": "A", "datasource": SOURCE, "expr": panel.expression, "legendFormat": panel.legend}],
    }

"""Alerting rules for Prometheus about numalign's programs. `objects.cluster` renders them; the chart and examples/ have
copies, which `make chart` writes. A rule names metrics of the programs' registries: a test asks these for every name
and label, and promtool checks the syntax. docs/use/operate.md says what to do about each alert."""

from __future__ import annotations

from typing import Any, Final


def _rule(name: str, expression: str, pending: str, severity: str, summary: str) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expression,
        "for": pending,
        "labels": {"severity": severity},
        "annotations": {"summary": summary},
    }


RULES: Final = (
    _rule(
        "NumalignReportStale",
        "numalign_agent_report_age_seconds > 600",
        "5m",
        "warning",
        "The agent {{ $labels.pod }} has not confirmed the topology report of its node for ten minutes.",
    ),
    _rule(
        "NumalignSecondPublisher",
        "numalign_agent_stands_back == 1",
        "15m",
        "warning",
        "Another publisher writes the report of the node of the agent {{ $labels.pod }}.",
    ),
    _rule(
        "NumalignNoLeader",
        'absent(leader_election_master_status{job=~".*numalign.*"} == 1)',
        "2m",
        "critical",
        "No numalign scheduler leads: pods that name it stay pending.",
    ),
    _rule(
        "NumalignPodsRejected",
        'increase(numalign_pods_rejected_total{placed_by="numalign"}[15m]) > 0',
        "0m",
        "warning",
        "A kubelet rejected a pod that numalign placed ({{ $labels.reason }}).",
    ),
    _rule(
        "NumalignNodesWithoutReport",
        'numalign_nodes{report="missing"} > 0',
        "15m",
        "warning",
        "{{ $value }} nodes have not published a topology report.",
    ),
    _rule(
        "NumalignPredictionsDiverge",
        "sum by (kind) (increase(numalign_prediction_divergence_total[1h])) > 10",
        "15m",
        "warning",
        "Reports contradict the predicted placement of pods ({{ $labels.kind }}): is another scheduler or a changed "
        "kubelet configuration at work?",
    ),
    _rule(
        "NumalignPodPendingLong",
        'max(numalign_oldest_pending_pod_seconds{queue=~"active|backoff|unschedulable"}) > 3600',
        "15m",
        "info",
        "A pod has been pending for more than an hour; numalign explain pods says why.",
    ),
    _rule(
        "NumalignDevicesStranded",
        "max by (resource) (numalign_devices_stranded) > 0",
        "1h",
        "info",
        "{{ $value }} free {{ $labels.resource }} are in NUMA zones without a free CPU.",
    ),
)


def group() -> dict[str, Any]:
    """A rule file for Prometheus without an operator."""
    return {"groups": [{"name": "numalign", "rules": list(RULES)}]}

"""Alerting rules for Prometheus about numalign's programs. `objects.cluster` renders them; the chart has a copy, which
`tools/chart.py` writes. A rule names the metric that a page of docs/use explains."""

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
        "increase(numalign_pods_rejected_total[15m]) > 0",
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
)

"""Objects of an installation that belong to no program: its namespace, its CustomResourceDefinitions, and what
lets Prometheus find its programs."""

from __future__ import annotations

from typing import Any, Final

from numalign.deploy import alerts, crds, dashboard, rights
from numalign.deploy.model import Monitor
from numalign.deploy.objects import agent, common, gc, scheduler
from numalign.deploy.objects.common import Context, Object, given
from numalign.deploy.release import MONITORING

NAMESPACE: Final = "namespace"
CRDS: Final = "crds"
MONITORS: Final = "monitoring"
CRITICAL: Final = ("system-cluster-critical", "system-node-critical")
KEEP: Final = {"helm.sh/resource-policy": "keep"}


def objects(context: Context) -> list[Object]:
    return [
        *_namespace(context),
        *_definitions(context),
        *_quota(context),
        *_monitors(context),
        *_dashboard(context),
    ]


def _namespace(context: Context) -> list[Object]:
    wanted = context.values.namespace
    if not wanted.create:
        return []
    security = given(**{"pod-security.kubernetes.io/enforce": wanted.pod_security})
    labels = wanted.labels | security
    metadata = context.metadata(NAMESPACE, context.namespace, namespace=None, labels=labels)
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}]


def _definitions(context: Context) -> list[Object]:
    wanted = context.values.crds
    if not wanted.install:
        return []
    return [_definition(context, each, KEEP if wanted.keep else {}) for each in crds.every()]


def _definition(context: Context, definition: Object, more: dict[str, str]) -> Object:
    metadata = definition["metadata"]
    annotations = metadata.get("annotations", {}) | more
    return definition | {
        "metadata": context.metadata(CRDS, metadata["name"], namespace=None, annotations=annotations),
    }


def _quota(context: Context) -> list[Object]:
    wanted = context.values.critical_pods_quota
    if not wanted.enabled:
        return []
    classes = {"scopeName": "PriorityClass", "operator": "In", "values": [*CRITICAL]}
    return [
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": context.metadata(NAMESPACE, f"{context.fullname}-critical-pods"),
            "spec": {"hard": {"pods": str(wanted.pods)}, "scopeSelector": {"matchExpressions": [classes]}},
        }
    ]


def _dashboard(context: Context) -> list[Object]:
    wanted = context.values.grafana_dashboard
    if not wanted.enabled:
        return []
    name = f"{context.fullname}-dashboard"
    metadata = context.metadata(MONITORS, name, labels=wanted.labels, annotations=wanted.annotations)
    data = {"numalign.json": common.json_text(dashboard.dashboard())}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}]


def _monitors(context: Context) -> list[Object]:
    values = context.values
    if MONITORING not in context.release.api_versions:
        return []
    return [
        *(
            _pod_monitor(context, name, values.pod_monitor)
            for name, wanted in ((agent.NAME, values.agent.enabled), (gc.NAME, values.gc.enabled))
            if wanted and values.pod_monitor.enabled
        ),
        *(_service_monitor(context) if values.service_monitor.enabled and values.scheduler.enabled else []),
        *(_rule(context) if values.prometheus_rule.enabled else []),
    ]


def _endpoint(wanted: Monitor, scheme: str) -> Object:
    return {
        "port": "pages",
        "path": "/metrics",
        "scheme": scheme,
        **given(
            interval=wanted.interval,
            scrapeTimeout=wanted.scrape_timeout,
            relabelings=wanted.relabelings,
            metricRelabelings=wanted.metric_relabelings,
        ),
    }


def _pod_monitor(context: Context, component: str, wanted: Monitor) -> Object:
    return {
        "apiVersion": MONITORING,
        "kind": "PodMonitor",
        "metadata": context.metadata(component, context.component(component), labels=wanted.labels),
        "spec": {
            "selector": {"matchLabels": context.selector(component)},
            "podMetricsEndpoints": [_endpoint(wanted, "http")],
        },
    }


def _service_monitor(context: Context) -> list[Object]:
    wanted = context.values.service_monitor
    secured = given(bearerTokenFile=wanted.bearer_token_file, tlsConfig=wanted.tls_config)
    name = context.component(scheduler.NAME)
    monitor = {
        "apiVersion": MONITORING,
        "kind": "ServiceMonitor",
        "metadata": context.metadata(scheduler.NAME, name, labels=wanted.labels),
        "spec": {
            "selector": {"matchLabels": context.selector(scheduler.NAME)},
            "endpoints": [_endpoint(wanted, "https") | secured],
        },
    }
    return [*_metrics_reader(context), monitor]


def _metrics_reader(context: Context) -> list[Object]:
    """The right to read the scheduler's metrics, to be bound to Prometheus' account."""
    if not context.values.rbac.create:
        return []
    rule: dict[str, Any] = {"nonResourceURLs": ["/metrics", "/metrics/slis", "/metrics/resources"], "verbs": ["get"]}
    name = f"{context.fullname}-metrics-reader"
    return [
        {
            "apiVersion": rights.API_VERSION,
            "kind": "ClusterRole",
            "metadata": context.metadata(scheduler.NAME, name, namespace=None),
            "rules": [rule],
        }
    ]


def _rule(context: Context) -> list[Object]:
    wanted = context.values.prometheus_rule
    rules = [*alerts.RULES, *wanted.additional_rules]
    return [
        {
            "apiVersion": MONITORING,
            "kind": "PrometheusRule",
            "metadata": context.metadata(MONITORS, context.fullname, labels=wanted.labels),
            "spec": {"groups": [{"name": common.PRODUCT, "rules": rules}]},
        }
    ]

"""The scheduler's objects: account, rights, configuration, Deployment, Service and what depends on their number."""

from __future__ import annotations

from typing import Any, Final

from numalign.deploy import rights, schedulerfile
from numalign.deploy.model import Scheduler
from numalign.deploy.objects import common
from numalign.deploy.objects.common import Context, Object, given
from numalign.deploy.release import CERT_MANAGER
from numalign.deploy.schedulerfile import Lease

NAME: Final = "scheduler"
FILE: Final = "scheduler.json"
FOLDER: Final = "/etc/numalign"
CERTIFICATES: Final = "/etc/numalign-tls"


def objects(context: Context) -> list[Object]:
    settings = context.values.scheduler
    if not settings.enabled:
        return []
    full = context.component(NAME)
    document = schedulerfile.document(settings, Lease(context.namespace, full))
    lease = schedulerfile.lease(document)
    table = rights.by_lease(
        rights.needed(rights.SCHEDULER, [rights.PAGES]), *((lease.namespace, lease.name) if lease else ("", ""))
    )
    data = {FILE: common.json_text(document)}
    return [
        *common.service_account(context, NAME, settings),
        *common.granted(context, NAME, settings, table),
        *common.non_root_account(context, NAME, settings),
        *common.network_policy(context, NAME, settings),
        common.config_map(context, NAME, full, data),
        *_disruption_budget(context, settings),
        *_service(context, settings),
        *_certificate(context, settings),
        _deployment(context, settings, common.checksum(data)),
    ]


def _deployment(context: Context, settings: Scheduler, checksum: str) -> Object:
    selector = context.selector(NAME)
    secret = _secret(context, settings)
    volumes = [{"name": "config", "configMap": {"name": context.component(NAME)}}]
    mounts = [{"name": "config", "mountPath": FOLDER, "readOnly": True}]
    args = [f"--config={FOLDER}/{FILE}"]
    if secret:
        volumes.append({"name": "tls", "secret": {"secretName": secret}})
        mounts.append({"name": "tls", "mountPath": CERTIFICATES, "readOnly": True})
        args += [f"--tls-certificate={CERTIFICATES}/tls.crt", f"--tls-key={CERTIFICATES}/tls.key"]
    main = common.container(
        context,
        NAME,
        settings,
        args,
        command=["numalign", "scheduler", "run"],
        volumeMounts=mounts,
        livenessProbe=common.probe(settings.liveness_probe, "/livez", "HTTPS"),
        readinessProbe=common.probe(settings.readiness_probe, "/readyz", "HTTPS"),
    )
    template = common.pod_template(
        context,
        NAME,
        settings,
        main,
        volumes=volumes,
        annotations={"checksum/config": checksum},
        topologySpreadConstraints=_spread(settings, selector),
    )
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(NAME, context.component(NAME), annotations=settings.annotations),
        "spec": {
            "replicas": settings.replicas,
            "selector": {"matchLabels": selector},
            **given(strategy=settings.update_strategy),
            "template": template,
        },
    }


def _spread(settings: Scheduler, selector: dict[str, str]) -> list[dict[str, Any]]:
    if settings.topology_spread_constraints or settings.replicas < 2:
        return settings.topology_spread_constraints
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector},
        }
    ]


def _disruption_budget(context: Context, settings: Scheduler) -> list[Object]:
    if not settings.pdb.enabled or settings.replicas < 2:
        return []
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": context.metadata(NAME, context.component(NAME)),
            "spec": {
                "maxUnavailable": settings.pdb.max_unavailable,
                "selector": {"matchLabels": context.selector(NAME)},
            },
        }
    ]


def _service(context: Context, settings: Scheduler) -> list[Object]:
    if not settings.service.enabled:
        return []
    port = {"name": "pages", "port": settings.port, "targetPort": "pages", "protocol": "TCP"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": context.metadata(NAME, context.component(NAME), annotations=settings.service.annotations),
            "spec": {"type": "ClusterIP", "selector": context.selector(NAME), "ports": [port]},
        }
    ]


def _secret(context: Context, settings: Scheduler) -> str:
    """The Secret with the certificate of the pages; empty: the scheduler signs its own."""
    if settings.tls.cert_manager.enabled:
        return f"{context.component(NAME)}-tls"
    return settings.tls.secret_name


def _certificate(context: Context, settings: Scheduler) -> list[Object]:
    if not settings.tls.cert_manager.enabled:
        return []
    service = f"{context.component(NAME)}.{context.namespace}.svc"
    return [
        {
            "apiVersion": CERT_MANAGER,
            "kind": "Certificate",
            "metadata": context.metadata(NAME, context.component(NAME)),
            "spec": {
                "secretName": _secret(context, settings),
                "dnsNames": [service, f"{service}.cluster.local"],
                **given(issuerRef=settings.tls.cert_manager.issuer_ref),
            },
        }
    ]

"""The scheduler's objects: account, rights, configuration, Deployment, Service and what depends on their number."""

from __future__ import annotations

from typing import Any, Final

from numalign.deploy import podpolicy, rights, schedulerfile
from numalign.deploy.model import Scheduler
from numalign.deploy.objects import common
from numalign.deploy.objects.common import Context, Object, given
from numalign.deploy.release import CERT_MANAGER, NODE_IN_TOKENS
from numalign.deploy.rights import Right
from numalign.deploy.schedulerfile import Lease

NAME: Final = "scheduler"
FILE: Final = "scheduler.json"
FOLDER: Final = "/etc/numalign"
CERTIFICATES: Final = "/etc/numalign-tls"
CLIENTS: Final = "/etc/numalign-clients"
RECORDING: Final = "/var/lib/numalign/record"


def objects(context: Context) -> list[Object]:
    settings = context.values.scheduler
    if not settings.enabled:
        return []
    full = context.component(NAME)
    document = schedulerfile.document(settings, Lease(context.namespace, full))
    table = _rights(settings, document)
    data = {FILE: common.json_text(document)}
    return [
        *common.service_account(context, NAME, settings),
        *common.granted(context, NAME, settings, table),
        *common.non_root_account(context, NAME, settings),
        *_policy(context, settings),
        *common.network_policy(context, NAME, settings.port, served=[*_ports(settings).values()]),
        common.config_map(context, NAME, full, data),
        *_disruption_budget(context, settings),
        *_service(context, settings),
        *_certificate(context, settings),
        _deployment(context, settings, common.checksum(data)),
    ]


def _policy(context: Context, settings: Scheduler) -> list[Object]:
    if not settings.direct_mode_policy or not context.release.at_least(NODE_IN_TOKENS):
        return []
    return common.labelled(context, NAME, podpolicy.manifest(f"{context.component(NAME)}-direct-mode"))


def _asked(settings: Scheduler) -> bool:
    return settings.mode == "extender"


def _ports(settings: Scheduler) -> dict[str, int]:
    """By name, what is served beside the pages."""
    extender = {"extender": settings.extender.port} if _asked(settings) else {}
    return extender | ({"expander": settings.expander_port} if settings.expander_port else {})


def _replicas(settings: Scheduler) -> int:
    return min(settings.replicas, 1) if _asked(settings) else settings.replicas


def _rights(settings: Scheduler, document: dict[str, Any]) -> tuple[Right, ...]:
    lease = schedulerfile.lease(document)
    options = [rights.PAGES, *([rights.PROVISIONING] if settings.provisioning_class else [])]
    options += [rights.KOORDINATOR] if schedulerfile.reads_koordinator(document) else []
    if _asked(settings):
        binds = [rights.BINDS] if settings.extender.bind else []
        evicts = [rights.EVICTS] if settings.extender.preemption == "numalign" else []
        return rights.needed(rights.EXTENDER, [*options, *binds, *evicts])
    where = (lease.namespace, lease.name) if lease else ("", "")
    return rights.by_lease(rights.needed(rights.SCHEDULER, options), *where)


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
    if settings.provisioning_class:
        args.append(f"--provisioning-class={settings.provisioning_class}")
    if settings.recording.enabled and not _asked(settings):
        volumes.append({"name": "recording", "emptyDir": {}})
        mounts.append({"name": "recording", "mountPath": RECORDING})
        args += [
            f"--record={RECORDING}",
            f"--record-size={settings.recording.size}",
            f"--record-age={settings.recording.age}",
        ]
    if settings.expander_port:
        args.append(f"--expander-port={settings.expander_port}")
    ports = [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in _ports(settings).items()]
    if _asked(settings):
        volumes.append({"name": "clients", "secret": {"secretName": settings.extender.client_ca_secret}})
        mounts.append({"name": "clients", "mountPath": CLIENTS, "readOnly": True})
        args += [
            f"--client-ca={CLIENTS}/ca.crt",
            f"--port={settings.extender.port}",
            f"--hold={settings.extender.hold}",
            f"--preemption={settings.extender.preemption}",
        ]
    main = common.container(
        context,
        NAME,
        settings,
        args,
        pages="--pages-port" if _asked(settings) else "--port",
        ports=ports,
        command=["numalign", "extender" if _asked(settings) else "scheduler", "run"],
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
            "replicas": _replicas(settings),
            "selector": {"matchLabels": selector},
            **given(strategy=settings.update_strategy or ({"type": "Recreate"} if _asked(settings) else {})),
            "template": template,
        },
    }


def _spread(settings: Scheduler, selector: dict[str, str]) -> list[dict[str, Any]]:
    if settings.topology_spread_constraints or _replicas(settings) < 2:
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
    if not settings.pdb.enabled or _replicas(settings) < 2:
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
    ports = {"pages": settings.port} | _ports(settings)
    served = [{"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in ports.items()]
    address = given(clusterIP=settings.extender.cluster_ip if _asked(settings) else "")
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": context.metadata(NAME, context.component(NAME), annotations=settings.service.annotations),
            "spec": {"type": "ClusterIP", "selector": context.selector(NAME), "ports": served, **address},
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

"""The KubeSchedulerConfiguration of an installed scheduler, from its values.

`objects.scheduler` puts it into the ConfigMap and grants the right to the lease that it names; `values` checks it. Each
field of `scheduler.config` replaces the field that the other values make, and those of leaderElection one by one."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from numalign.api.schedulerconfig.configuration import KIND, STOCK_LEASE
from numalign.api.schedulerconfig.pluginargs import API_VERSION
from numalign.api.schedulerconfig.plugins import NUMALIGN, ZONES
from numalign.deploy.model import Scheduler

STOCK_NAMESPACE: Final = "kube-system"
EVERYBODY: Final = "default-scheduler"


class Lease(Struct, frozen=True):
    namespace: str
    name: str


def document(settings: Scheduler, own: Lease) -> dict[str, Any]:
    """`own` is the lease of a scheduler beside kube-scheduler, unless the values name another."""
    made = {"apiVersion": API_VERSION, "kind": KIND, "profiles": _profiles(settings)}
    given = settings.config.get("leaderElection") or {}
    election = _election(settings, own) | {key: value for key, value in given.items() if value is not None}
    return made | settings.config | {"leaderElection": election}


def lease(configuration: dict[str, Any]) -> Lease | None:
    """The lease that the scheduler of this configuration leads by; None: it leads without one."""
    election = configuration["leaderElection"]
    return Lease(election["resourceNamespace"], election["resourceName"]) if election["leaderElect"] else None


def reads_koordinator(configuration: dict[str, Any]) -> bool:
    """Whether Koordinator's annotations and objects count."""
    plugins = [each for profile in configuration.get("profiles") or () for each in profile.get("pluginConfig") or ()]
    return any((each.get("args") or {}).get("koordinatorAnnotations") is True for each in plugins)


def _election(settings: Scheduler, own: Lease) -> dict[str, Any]:
    wanted = settings.leader_election
    default = Lease(STOCK_NAMESPACE, STOCK_LEASE) if settings.mode == "only" else own
    return {
        "leaderElect": settings.mode != "extender",
        "leaseDuration": wanted.lease_duration,
        "renewDeadline": wanted.renew_deadline,
        "retryPeriod": wanted.retry_period,
        "resourceName": wanted.resource_name or default.name,
        "resourceNamespace": wanted.resource_namespace or default.namespace,
    }


def _profiles(settings: Scheduler) -> list[dict[str, Any]]:
    names = {"secondary": [settings.name], "only": [EVERYBODY, settings.name], "extender": [EVERYBODY]}[settings.mode]
    return [{"schedulerName": name, "pluginConfig": _plugin_config(settings)} for name in dict.fromkeys(names)]


def _plugin_config(settings: Scheduler) -> list[dict[str, Any]]:
    ours: dict[str, Any] = {
        "flavour": settings.flavour,
        "nodesWithoutReport": settings.nodes_without_report,
        "deleteRejectedPods": settings.delete_rejected_pods,
    }
    if settings.first_report_grace_period:
        ours["firstReportGracePeriod"] = settings.first_report_grace_period
    zones = _zones(settings)
    return [*([{"name": ZONES, "args": zones}] if zones else []), {"name": NUMALIGN, "args": ours}]


def _zones(settings: Scheduler) -> dict[str, Any]:
    strategy, cache = settings.scoring_strategy, settings.cache
    args: dict[str, Any] = {}
    if strategy.type:
        args["scoringStrategy"] = {"type": strategy.type}
        if strategy.resources:
            args["scoringStrategy"]["resources"] = [
                {"name": each.name, "weight": each.weight} for each in strategy.resources
            ]
    if cache.resync_period_seconds:
        args["cacheResyncPeriodSeconds"] = cache.resync_period_seconds
    written = {
        "resyncMethod": cache.resync_method,
        "foreignPodsDetect": cache.foreign_pods_detect,
        "informerMode": cache.informer_mode,
    }
    if any(written.values()):
        args["cache"] = {key: value for key, value in written.items() if value}
    if settings.preemption_mode:
        args["preemptionMode"] = settings.preemption_mode
    return args

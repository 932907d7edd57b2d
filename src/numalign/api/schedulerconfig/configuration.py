"""Reads a KubeSchedulerConfiguration: profiles with their plugin sets, leader election and client connection.

The command line and the scheduler's start pass the parsed file. Unknown or invalid values are refused with the path of
the field; values without effect are listed in `warnings` (kube-scheduler spec 6.1). Defaults are kube-scheduler's,
except for a lease of its own and no client-side rate limit. Plugin lists are combined as kube-scheduler does
(kube-scheduler spec 6.2). The zone plugin runs by default; a profile that enables it has it exactly as it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.decode.mistakes import Mistakes
from numalign.api.decode.structs import Wire
from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.api.schedulerconfig import pluginargs, plugins
from numalign.api.schedulerconfig.pluginargs import API_VERSION, Reader
from numalign.api.schedulerconfig.plugins import DEFAULTS, MULTI_POINT, POINTS, REMOVED, ZONES, Plugin, Point

LEASES: Final = "leases"
JITTER: Final = 1.2
DEFAULT_BURST: Final = 100
JSON: Final = "application/json"


class LeaderElection(Struct, frozen=True, kw_only=True, rename="camel"):
    """Durations are in seconds."""

    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_name: str
    resource_namespace: str = "kube-system"


class ClientConnection(Struct, frozen=True, kw_only=True, rename="camel"):
    kubeconfig: str = ""
    """Empty: the credentials that a pod has."""
    qps: float | None = None
    """Calls per second; None: no limit."""
    burst: int = DEFAULT_BURST


def leader_election(field: Field, default_name: str) -> LeaderElection:
    if not field.given:
        return LeaderElection(resource_name=default_name)
    known, mistakes = ("leaderElect", "leaseDuration", "renewDeadline", "retryPeriod"), Mistakes()
    mistakes.only(field, (*known, "resourceLock", "resourceName", "resourceNamespace"))
    elect = field.at("leaderElect")
    parts = mistakes.each(
        {
            "leader_elect": lambda: fields.boolean(elect) if elect.given else True,
            "lease_duration": lambda: fields.duration(field.at("leaseDuration"), 15.0),
            "renew_deadline": lambda: fields.duration(field.at("renewDeadline"), 10.0),
            "retry_period": lambda: fields.duration(field.at("retryPeriod"), 2.0),
            "resource_name": lambda: _text(field.at("resourceName")) or default_name,
            "resource_namespace": lambda: _text(field.at("resourceNamespace")) or "kube-system",
        }
    )
    mistakes.refuse()
    read = LeaderElection(**parts)
    if read.leader_elect:
        _require_sound(field, read)
    return read


def _require_sound(field: Field, read: LeaderElection) -> None:
    lock = field.at("resourceLock")
    if (_text(lock) or LEASES) != LEASES:
        raise lock.bad(f"{errors.echo(lock.value)} is not {LEASES}, the only supported lock")
    for key, seconds in (("leaseDuration", read.lease_duration), ("renewDeadline", read.renew_deadline)):
        if seconds <= 0:
            raise field.at(key).bad(f"{errors.echo(field.at(key).value)} is not greater than 0")
    if read.retry_period <= 0:
        raise field.at("retryPeriod").bad(f"{errors.echo(field.at('retryPeriod').value)} is not greater than 0")
    if read.lease_duration <= read.renew_deadline:
        raise field.at("leaseDuration").bad(
            f"not longer than renewDeadline ({fields.duration_text(read.renew_deadline)})"
        )
    if read.renew_deadline <= JITTER * read.retry_period:
        least = f"{JITTER} times retryPeriod ({fields.duration_text(read.retry_period)})"
        raise field.at("renewDeadline").bad(f"not longer than {least}")


def client_connection(field: Field, warnings: list[str]) -> ClientConnection:
    if not field.given:
        return ClientConnection()
    mistakes = Mistakes()
    mistakes.only(field, ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"))
    for key in ("acceptContentTypes", "contentType"):
        with mistakes.part():
            if _text(field.at(key)) not in ("", JSON):
                warnings.append(f"{field.at(key).path}: has no effect; objects are sent as {JSON}")
    burst = field.at("burst")
    parts = mistakes.each(
        {
            "kubeconfig": lambda: _text(field.at("kubeconfig")),
            "qps": lambda: _rate(field.at("qps")),
            "burst": lambda: (fields.integer(burst, 0, fields.INT32_MAX) if burst.given else 0) or DEFAULT_BURST,
        }
    )
    mistakes.refuse()
    return ClientConnection(**parts)


def _rate(field: Field) -> float | None:
    """None, no limit, if absent or 0; negative values mean no limit in the stock scheduler, too."""
    if not field.given:
        return None
    if not isinstance(field.value, int | float) or isinstance(field.value, bool) or not abs(field.value) < 1e9:
        raise field.bad(f"{errors.echo(field.value)} is not a number of calls a second")
    return float(field.value) if field.value > 0 else None


def _text(field: Field) -> str:
    return fields.text(field) if field.given else ""


EVERY: Final = "*"


class PluginSet(Struct, frozen=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: frozenset[str] = frozenset()


class Plugins(Struct, frozen=True):
    """Names by point, in the order in which they run, and the weights of those that score."""

    at: Mapping[Point, tuple[str, ...]]
    weights: Mapping[str, int]

    def has(self, plugin: str) -> bool:
        return any(plugin in names for names in self.at.values())


NO_PLUGINS: Final = Plugins(at={}, weights={})


def read_plugins(field: Field, warnings: list[str]) -> Plugins:
    """The plugins of a profile; the defaults where it sets none."""
    own = dict[str, PluginSet]()
    if field.given:
        mistakes = Mistakes()
        mistakes.only(field, (MULTI_POINT, *Point))
        own = mistakes.each({name: partial(_set, field.at(name), warnings) for name in (MULTI_POINT, *Point)})
        mistakes.refuse()
    several = _merged(_defaults(own), own.get(MULTI_POINT, PluginSet()))
    plugins = {point: _expanded(point, own.get(point, PluginSet()), several) for point in Point}
    _require_one_queue_and_a_binder(field, plugins)
    return Plugins(at=plugins, weights=_weights(plugins[Point.SCORE], own, several))


def _set(field: Field, warnings: list[str]) -> PluginSet:
    if not field.given:
        return PluginSet()
    mistakes = Mistakes()
    mistakes.only(field, ("enabled", "disabled"))
    enabled: dict[str, Plugin] = {}
    with mistakes.part():
        for item in fields.items(field.at("enabled")):
            with mistakes.part():
                plugin = _plugin(item, field.path.rpartition(".")[2])
                if plugin.name in enabled:
                    raise item.at("name").bad(f"{plugin.name} is enabled twice; remove one")
                enabled[plugin.name] = plugin
    disabled = frozenset[str]()
    with mistakes.part():
        disabled = frozenset(_disabled(field.at("disabled"), warnings))
    mistakes.refuse()
    return PluginSet(tuple(enabled.values()), disabled)


def _plugin(item: Field, point: str) -> Plugin:
    fields.only(item, ("name", "weight"))
    name, weight = fields.text(item.at("name")), item.at("weight")
    if name in REMOVED:
        raise item.at("name").bad(f"{errors.echo(name)} was removed; NodeVolumeLimits counts all volumes")
    if name not in POINTS:
        hint = NOT_SERVED.get(name) or fields.suggestion(name, POINTS)
        raise item.at("name").bad(f"there is no plugin {errors.echo(name)}; {hint}")
    if point != MULTI_POINT and point not in POINTS[name]:
        raise item.at("name").bad(f"{name} does nothing at {point}; it runs at {', '.join(POINTS[name])}")
    return Plugin(name, fields.integer(weight, 0, fields.INT32_MAX) if weight.given else 0)


def _disabled(field: Field, warnings: list[str]) -> Iterator[str]:
    mistakes = Mistakes()
    for item in fields.items(field):
        with mistakes.part():
            fields.only(item, ("name", "weight"))
            name = fields.text(item.at("name"))
            if name != EVERY and name not in POINTS:
                why = f"there is no plugin {errors.echo(name)}, so nothing is disabled"
                warnings.append(f"{item.at('name').path}: {why}")
            yield name
    mistakes.refuse()


def _defaults(own: Mapping[str, PluginSet]) -> tuple[Plugin, ...]:
    named = {plugin.name for each in own.values() for plugin in each.enabled}
    return tuple(plugin for plugin in DEFAULTS if plugin.name != ZONES or ZONES not in named)


def _merged(defaults: tuple[Plugin, ...], own: PluginSet) -> tuple[Plugin, ...]:
    """Defaults that are not disabled, with the profile's weights, then the profile's other plugins."""
    enabled = {plugin.name: plugin for plugin in own.enabled}
    kept = [] if EVERY in own.disabled else [each for each in defaults if each.name not in own.disabled]
    names = {plugin.name for plugin in kept}
    return (
        *(enabled.get(each.name, each) for each in kept),
        *(each for each in own.enabled if each.name not in names),
    )


def _expanded(point: Point, own: PluginSet, several: tuple[Plugin, ...]) -> tuple[str, ...]:
    explicit = [plugin.name for plugin in own.enabled]
    if EVERY in own.disabled:
        return tuple(explicit)
    here = [each.name for each in several if point in POINTS[each.name] and each.name not in own.disabled]
    overriding = [name for name in explicit if name in here]
    added = [name for name in explicit if name not in here]
    return (*overriding, *(name for name in here if name not in explicit), *added)


def _weights(scoring: tuple[str, ...], own: Mapping[str, PluginSet], several: tuple[Plugin, ...]) -> Mapping[str, int]:
    weights_by_name = {plugin.name: plugin.weight for plugin in several}
    weights_by_name |= {plugin.name: plugin.weight for plugin in own.get(Point.SCORE, PluginSet()).enabled}
    return {name: weights_by_name[name] or 1 for name in scoring}


def _require_one_queue_and_a_binder(field: Field, plugins: Mapping[Point, tuple[str, ...]]) -> None:
    if len(plugins[Point.QUEUE_SORT]) != 1:
        raise field.at("queueSort").bad("exactly one plugin has to sort the queue; leave PrioritySort enabled")
    if not plugins[Point.BIND]:
        raise field.at("bind").bad("some plugin has to bind pods; leave DefaultBinder enabled")


KIND: Final = "KubeSchedulerConfiguration"
NAME: Final = "numalign"
NOT_SERVED: Final = {
    "Coscheduling": "it schedules gangs (PodGroup), which numalign does not: remove it, and admit gangs with Kueue",
    "CapacityScheduling": "it enforces ElasticQuota, which numalign does not: remove it, and set quotas with Kueue",
} | dict.fromkeys(
    (
        "LoadVariationRiskBalancing",
        "LowRiskOverCommitment",
        "NetworkOverhead",
        "NodeMetadata",
        "NodeResourcesAllocatable",
        "Peaks",
        "PodState",
        "PreemptionToleration",
        "QOSSort",
        "SySched",
        "TargetLoadPacking",
        "TopologicalSort",
    ),
    "it is a plugin of scheduler-plugins that numalign does not have: remove it",
)
"""Plugins of scheduler-plugins that users may have in their file, and what to do about each."""
STOCK_LEASE: Final = "kube-scheduler"
KNOWN: Final = (
    "apiVersion",
    "kind",
    "parallelism",
    "leaderElection",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
    "extenders",
    "delayCacheUntilActive",
)
INT64_MAX: Final = 2**63 - 1
NO_READERS: Final[Mapping[str, Reader]] = {}


class Profile(Struct, frozen=True, kw_only=True, rename="camel"):
    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    """None: all nodes; 0: a percentage that falls with the number of nodes, as in the stock scheduler."""
    plugins: Plugins
    args: Mapping[str, Wire]
    """By plugin, for all that run and have arguments; includes Numalign if there is a reader for it."""


class Configuration(Struct, frozen=True, kw_only=True, rename="camel"):
    profiles: tuple[Profile, ...]
    leader_election: LeaderElection
    client_connection: ClientConnection
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    parallelism: int = 16
    delay_cache_until_active: bool = False
    enable_profiling: bool = True
    warnings: tuple[str, ...] = ()


def read(value: object, source: str, readers: Mapping[str, Reader] = NO_READERS) -> Configuration:
    config = fields.root(value, KIND, source)
    fields.of_kind(config, API_VERSION, KIND)
    mistakes = Mistakes()
    mistakes.only(config, KNOWN)
    warnings: list[str] = []
    percentage, profiles = None, tuple[Profile, ...]()
    with mistakes.part():
        _refuse_extenders(config.at("extenders"))
    with mistakes.part():
        percentage = _percentage(config.at("percentageOfNodesToScore"))
    with mistakes.part():
        profiles = _profiles(config.at("profiles"), percentage, readers, warnings)
    with mistakes.part():
        _flag(config.at("enableContentionProfiling"), True)
    parts = mistakes.each(
        {
            "leader_election": lambda: leader_election(config.at("leaderElection"), _lease(profiles)),
            "client_connection": lambda: client_connection(config.at("clientConnection"), warnings),
            "pod_initial_backoff_seconds": lambda: _number(config.at("podInitialBackoffSeconds"), 1, INT64_MAX, 1),
            "pod_max_backoff_seconds": lambda: _number(config.at("podMaxBackoffSeconds"), 0, INT64_MAX, 10),
            "parallelism": lambda: _number(config.at("parallelism"), 1, fields.INT32_MAX, 16),
            "delay_cache_until_active": lambda: _flag(config.at("delayCacheUntilActive"), False),
            "enable_profiling": lambda: _flag(config.at("enableProfiling"), True),
        }
    )
    if {"pod_initial_backoff_seconds", "pod_max_backoff_seconds"} <= parts.keys():
        with mistakes.part():
            _require_rising(config, parts["pod_initial_backoff_seconds"], parts["pod_max_backoff_seconds"])
    mistakes.refuse()
    return Configuration(profiles=profiles, warnings=tuple(warnings), **parts)


def _refuse_extenders(field: Field) -> None:
    for item in fields.items(field):
        raise item.bad("extenders are not supported, and ignoring one would change where pods are placed; remove it")


def _profiles(
    field: Field, percentage: int | None, readers: Mapping[str, Reader], warnings: list[str]
) -> tuple[Profile, ...]:
    items = list(fields.items(field)) or [structs.replace(field, value={}, path="profiles[0]")]
    places: dict[str, Field] = {}
    mistakes, found = Mistakes(), list[Profile]()
    for item in items:
        with mistakes.part():
            found.append(_profile(item, places, percentage, readers, warnings, alone=len(items) == 1))
    mistakes.refuse()
    return tuple(found)


def _profile(
    item: Field,
    places: dict[str, Field],
    percentage: int | None,
    readers: Mapping[str, Reader],
    warnings: list[str],
    *,
    alone: bool,
) -> Profile:
    """`places`: the profiles before, by name."""
    mistakes, part, running = Mistakes(), None, NO_PLUGINS
    mistakes.only(item, ("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"))
    name, own, args = item.at("schedulerName"), "", dict[str, Wire]()
    with mistakes.part():
        own = _name(name, alone=alone)
        if own in places:
            raise name.bad(f"{errors.echo(own)} is the name of {places[own].path} too; give each its own")
        places[own] = item
    with mistakes.part():
        part = _percentage(item.at("percentageOfNodesToScore"))
    with mistakes.part():
        running = read_plugins(item.at("plugins"), warnings)
    with mistakes.part():
        args = _args(item.at("pluginConfig"), running, readers, warnings)
    mistakes.refuse()
    return Profile(
        scheduler_name=own,
        percentage_of_nodes_to_score=percentage if part is None else part,
        plugins=running,
        args=args,
    )


def _name(field: Field, *, alone: bool) -> str:
    if alone and not field.given:
        return NAME
    if not field.given or not fields.text(field):
        raise field.bad("missing; write the name that pods have in spec.schedulerName")
    return fields.text(field)


def _args(field: Field, running: Plugins, readers: Mapping[str, Reader], warnings: list[str]) -> dict[str, Wire]:
    """The arguments in the file, and defaults for the other plugins that run."""
    written: dict[str, Field] = {}
    mistakes = Mistakes()
    for item in fields.items(field):
        with mistakes.part():
            fields.only(item, ("name", "args"))
            name = item.at("name")
            plugin = fields.text(name)
            if plugin in written:
                raise name.bad(f"{errors.echo(plugin)} has arguments already; merge both entries")
            if plugin in plugins.REMOVED:
                raise name.bad(f"{errors.echo(plugin)} was removed; NodeVolumeLimits counts all volumes")
            written[plugin] = item.at("args")
            if plugin not in {**pluginargs.STOCK, **readers}:
                warnings.append(f"{item.path}: {errors.clipped(plugin)} has no arguments that numalign reads")
    names = [name for name in (*plugins.POINTS, plugins.NUMALIGN) if name in written or running.has(name)]
    left_out = structs.replace(field, value=None)
    read = mistakes.each(
        {
            name: partial(pluginargs.read, name, written.get(name, left_out), readers)
            for name in (*names, plugins.NUMALIGN)
        }
    )
    mistakes.refuse()
    return {name: args for name, args in read.items() if args is not None}


def _lease(profiles: tuple[Profile, ...]) -> str:
    """A scheduler of all pods replaces the stock scheduler, so it uses the stock scheduler's lease."""
    everybody = any(profile.scheduler_name == DEFAULT_SCHEDULER for profile in profiles)
    return STOCK_LEASE if everybody else NAME


def _require_rising(config: Field, least: int, most: int) -> None:
    if most < least:
        raise config.at("podMaxBackoffSeconds").bad(f"{most} is less than podInitialBackoffSeconds ({least})")


def _percentage(field: Field) -> int | None:
    return fields.integer(field, 0, 100) if field.given else None


def _number(field: Field, low: int, high: int, default: int) -> int:
    return fields.integer(field, low, high) if field.given else default


def _flag(field: Field, default: bool) -> bool:
    return fields.boolean(field) if field.given else default

"""Reads the scheduler's configuration: KubeSchedulerConfiguration with the arguments of the zone plugin and our own.

`numalign scheduler run` and the commands call `read`. NodeResourceTopologyMatchArgs mean what they mean to the Go
plugin; settings that it does not have are in NumalignArgs. All profiles share one engine, so these arguments must be
the same wherever they are given, and apply to all. `plain` and its inverse convert an effective configuration, with
all defaults, for /configz and snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import decode, fields
from numalign.api.decode import structs as wire
from numalign.api.decode.fields import INT32_MAX, Field
from numalign.api.decode.mistakes import Mistakes
from numalign.api.decode.structs import Wire
from numalign.api.errors import BadObject
from numalign.api.schedulerconfig import configuration, pluginargs
from numalign.api.schedulerconfig.configuration import Configuration, Profile
from numalign.api.schedulerconfig.pluginargs import Reader
from numalign.api.schedulerconfig.plugins import NUMALIGN, ZONES, Point
from numalign.placement import referenceargs
from numalign.placement.referenceargs import CacheArgs, NodeResourceTopologyMatchArgs
from numalign.placement.rules.nodes import topologyreports
from numalign.placement.rules.nodes.topologyreports import NodesWithoutReport
from numalign.placement.settings import CacheMode, Flavour, Settings, cache_mode
from numalign.scheduler.queue import queue
from numalign.scheduler.queue.pools import PodBackoff

VERSION: Final = "numalign.io/v1alpha1"
VERSIONS: Final = tuple(f"{referenceargs.GROUP}/{version}" for version in referenceargs.VERSIONS)
KNOWN: Final = (
    "flavour",
    "cacheMode",
    "trustBindOrder",
    "liveShapes",
    "koordinatorAnnotations",
    "seed",
    "parallelBinds",
    "podMaxInUnschedulablePodsDuration",
    "deleteRejectedPods",
    "keepDeletedReports",
    "nodesWithoutReport",
    "firstReportGracePeriod",
)
NOT_SHARED: Final = frozenset({*pluginargs.META, "nodesWithoutReport", "firstReportGracePeriod"})
"""What says nothing about the engine, which all profiles share: each profile has its own."""
INT64_MAX: Final = 2**63 - 1
PARALLELISM: Final = 16
"""kube-scheduler's default."""
ALWAYS: Final = (("SchedulingGates", Point.PRE_ENQUEUE),)
"""The API promises it."""

T = TypeVar("T", bound=Wire)


class NumalignArgs(Wire, frozen=True, omit_defaults=False):
    flavour: Flavour = "exact"
    cache_mode: CacheMode | None = None
    """None: the default of the flavour."""
    trust_bind_order: bool = False
    live_shapes: int = 1024
    koordinator_annotations: bool = False
    """Whether Koordinator's annotations of pods are read, and decisions are written for its agent, too."""
    seed: int | None = None
    """Seed of the choice among equally good nodes; None: random at each start."""
    parallel_binds: int = 64
    """Bindings in flight at a time. Each uses its own connection, which costs more to open than a binding takes. But an
    API server that gets many bindings at a time writes them together, which costs less for each."""
    pod_max_in_unschedulable_pods_duration: float = 300.0
    """Seconds; a flag of kube-scheduler."""
    delete_rejected_pods: bool = False
    """Whether to delete pods that this scheduler bound and a kubelet rejected."""
    keep_deleted_reports: float | None = None
    """Seconds for which a deleted report stays in force; None: as long as its Node exists."""
    nodes_without_report: NodesWithoutReport = "wait"
    """Whether pods that a kubelet may align go to nodes that have not reported their zones."""
    first_report_grace_period: float = topologyreports.GRACE
    """Seconds that a Ready node has for its first report, with `wait`."""


def read(value: object, source: str) -> Configuration:
    """The configuration of a parsed file. BadObject names the field that is wrong."""
    config = configuration.read(value, source, READERS)
    file = fields.root(value, configuration.KIND, source)
    for plugin in READERS:
        config = _shared(config, file, plugin)
    return structs.replace(config, warnings=(*config.warnings, *_doubts(config)))


def ours(config: Configuration) -> NumalignArgs:
    return _first(config, NUMALIGN, NumalignArgs)


def zones(config: Configuration) -> NodeResourceTopologyMatchArgs:
    return _first(config, ZONES, NodeResourceTopologyMatchArgs)


def looks_at_zones(profile: Profile) -> bool:
    """Whether pods of the profile are placed by the zones of nodes; otherwise by node totals only."""
    return ZONES in profile.plugins.at[Point.FILTER]


def defaults(plugin: str) -> Wire | None:
    """The default arguments of a plugin; None: it has no arguments."""
    return pluginargs.read(plugin, fields.root(None, configuration.KIND, ""), READERS)


def engine(config: Configuration) -> Settings:
    """The engine settings of this configuration."""
    own, topology = ours(config), zones(config)
    strategy = topology.scoring_strategy
    return Settings(
        flavour=own.flavour,
        cache_mode=own.cache_mode or _cache_mode(own, topology),
        strategy=referenceargs.Strategy(strategy.type)
        if strategy is not None
        else referenceargs.Strategy.LEAST_ALLOCATED,
        weights=referenceargs.weights(topology),
        trust_bind_order=own.trust_bind_order,
        live_shapes=own.live_shapes,
        koordinator_annotations=own.koordinator_annotations,
        keep_deleted_reports=own.keep_deleted_reports,
        profiles=tuple(profile.scheduler_name for profile in config.profiles if looks_at_zones(profile)),
        reference=topology,
    )


def _cache_mode(own: NumalignArgs, topology: NodeResourceTopologyMatchArgs) -> CacheMode | None:
    """The cache mode. The reference flavour uses the cache that the Go plugin's arguments select (plugin spec 10)."""
    if own.flavour == "exact":
        return None
    if topology.discard_reserved_nodes:
        return "discardReserved"
    return "overReserve" if (topology.cache_resync_period_seconds or 0) > 0 else "passthrough"


def waiting(config: Configuration) -> queue.QueueSettings:
    """The queue settings of this configuration."""
    backoff = PodBackoff(float(config.pod_initial_backoff_seconds), float(config.pod_max_backoff_seconds))
    return queue.QueueSettings(backoff=backoff, longest_parked=ours(config).pod_max_in_unschedulable_pods_duration)


def _topology_match(args: Field) -> NodeResourceTopologyMatchArgs:
    own = pluginargs.own_fields(args, ZONES, VERSIONS)
    pluginargs.refuse_unknown(own, NodeResourceTopologyMatchArgs)
    with pluginargs.under(own):
        return referenceargs.complete(fields.named(own) if own.given else {})


def _numalign(args: Field) -> NumalignArgs:
    own, default = pluginargs.own_fields(args, NUMALIGN, (VERSION,)), NumalignArgs()
    if not own.given:
        return default
    mistakes = Mistakes()
    mistakes.only(own, KNOWN)
    kept = own.at("keepDeletedReports")
    mode, seed, longest = own.at("cacheMode"), own.at("seed"), own.at("podMaxInUnschedulablePodsDuration")
    parked = default.pod_max_in_unschedulable_pods_duration
    parts = mistakes.each(
        {
            "flavour": lambda: fields.one_of(own.at("flavour"), get_args(Flavour), default.flavour),
            "cache_mode": lambda: fields.one_of(mode, get_args(CacheMode), "predictive") if mode.given else None,
            "trust_bind_order": lambda: _flag(own.at("trustBindOrder")),
            "live_shapes": lambda: _count(own.at("liveShapes"), default.live_shapes),
            "koordinator_annotations": lambda: _flag(own.at("koordinatorAnnotations")),
            "seed": lambda: fields.integer(seed, 0, INT64_MAX) if seed.given else None,
            "parallel_binds": lambda: _count(own.at("parallelBinds"), default.parallel_binds),
            "pod_max_in_unschedulable_pods_duration": lambda: _seconds(longest, 0.0) or parked,
            "delete_rejected_pods": lambda: _flag(own.at("deleteRejectedPods")),
            "keep_deleted_reports": lambda: _seconds(kept, 0.0) if kept.given else None,
            "nodes_without_report": lambda: fields.one_of(
                own.at("nodesWithoutReport"), get_args(NodesWithoutReport), default.nodes_without_report
            ),
            "first_report_grace_period": lambda: _seconds(
                own.at("firstReportGracePeriod"), default.first_report_grace_period
            ),
        }
    )
    mistakes.refuse()
    read = NumalignArgs(**parts)
    with pluginargs.under(own):
        cache_mode(Settings(flavour=read.flavour, cache_mode=read.cache_mode))
    return read


READERS: Final[Mapping[str, Reader]] = {ZONES: _topology_match, NUMALIGN: _numalign}


def _shared(config: Configuration, file: Field, plugin: str) -> Configuration:
    """The configuration with one profile's arguments of the plugin applied to all profiles that do not set them."""
    written = dict(_written(file, plugin))
    if not written:
        return config
    first = next(iter(written))
    common = config.profiles[first].args[plugin]
    for number, args in written.items():
        own = config.profiles[number].args[plugin]
        if own != _merged(common, own):
            raise args.bad(f"not the settings of {plugin} in profiles[{first}]; all profiles share one engine")
    profiles = [
        structs.replace(each, args={**each.args, plugin: _merged(common, each.args[plugin])})
        if plugin in each.args
        else each
        for each in config.profiles
    ]
    return structs.replace(config, profiles=tuple(profiles))


def _merged(common: Wire, own: Wire) -> Wire:
    """The shared arguments, with those that each profile sets for itself."""
    if not isinstance(common, NumalignArgs) or not isinstance(own, NumalignArgs):
        return common
    return structs.replace(
        common,
        nodes_without_report=own.nodes_without_report,
        first_report_grace_period=own.first_report_grace_period,
    )


def _written(file: Field, plugin: str) -> Iterator[tuple[int, Field]]:
    """The indexes of profiles that set shared arguments of the plugin, even to the defaults."""
    for number, profile in enumerate(fields.items(file.at("profiles"))):
        for item in fields.items(profile.at("pluginConfig")):
            args = item.at("args")
            if item.at("name").value == plugin and args.given and fields.named(args).keys() - NOT_SHARED:
                yield number, args


def _first(config: Configuration, plugin: str, kind: type[T]) -> T:
    found = (profile.args.get(plugin) for profile in config.profiles)
    return next((each for each in found if isinstance(each, kind)), kind())


def _doubts(config: Configuration) -> Iterator[str]:
    """Warnings about settings that do not have the effect that they seem to have."""
    topology, own = zones(config), ours(config)
    for setting, meant in _unknown(topology.cache or CacheArgs()):
        yield f"{ZONES}: unknown value for {setting}; using {meant}, as the Go plugin does"
    if own.flavour == "exact" and (topology.cache_resync_period_seconds or topology.discard_reserved_nodes):
        yield f"{ZONES}: cache settings apply to flavour reference only; the exact flavour uses its ledger"
    if config.parallelism != PARALLELISM:
        yield "parallelism: ignored; all nodes are evaluated at once"
    for profile in config.profiles:
        if not looks_at_zones(profile):
            yield f"profile {profile.scheduler_name}: {ZONES} does not filter, so pods are placed by node totals only"
        for plugin, point in ALWAYS:
            if plugin not in profile.plugins.at[point]:
                yield f"profile {profile.scheduler_name}: {plugin} runs at {point} although it is disabled"


def _unknown(cache: CacheArgs) -> Iterator[tuple[str, str]]:
    for name, written, meant in (
        ("foreignPodsDetect", cache.foreign_pods_detect, referenceargs.foreign_pods_detect(cache)),
        ("resyncMethod", cache.resync_method, referenceargs.resync_method(cache)),
        ("informerMode", cache.informer_mode, referenceargs.informer_mode(cache)),
        ("resyncScope", cache.resync_scope, referenceargs.resync_scope(cache)),
    ):
        if written is not None and written != meant:
            yield f"cache.{name}: {errors.echo(written)}", meant.value


def _flag(field: Field) -> bool:
    return fields.boolean(field) if field.given else False


def _seconds(field: Field, default: float) -> float:
    """Nothing at all stands for the default; no time at all is no time."""
    read = fields.duration_seconds(field) if field.given else default
    if read < 0:
        raise field.bad(f"{errors.echo(field.value)} is negative")
    return read


def _count(field: Field, default: int) -> int:
    return fields.integer(field, 1, INT32_MAX) if field.given else default


ARGS: Final = "args"


def plain(config: Configuration) -> dict[str, Any]:
    values: dict[str, Any] = _plain(config)
    return values


def again(values: dict[str, Any], source: str) -> Configuration:
    """The inverse of `plain`. BadObject if the values are not of that form."""
    try:
        profiles = [each | {ARGS: {}} for each in values["profiles"]]
        config = msgspec.convert(values | {"profiles": profiles}, Configuration)
        pairs = zip(config.profiles, values["profiles"], strict=True)
        made = structs.replace(config, profiles=tuple(_with_args(profile, each[ARGS]) for profile, each in pairs))
        for profile in made.profiles:
            for point in Point:
                profile.plugins.at[point]
        # Names that only the engine knows.
        engine(made)
        return made
    except KeyError as missing:
        raise BadObject(configuration.KIND, source, f"configuration.{missing.args[0]}", "is missing") from None
    except decode.UNREADABLE as problem:
        raise BadObject(
            configuration.KIND, source, "configuration", f"cannot be read: {decode.shortened(problem)}"
        ) from None


def _with_args(profile: Profile, values: dict[str, Any]) -> Profile:
    usual = {name: defaults(name) for name in values}
    read: dict[str, Wire] = {
        name: msgspec.convert(values[name], type(default), dec_hook=wire.decoded)
        for name, default in usual.items()
        if default is not None
    }
    return structs.replace(profile, args=read)


def _plain(thing: Any) -> Any:
    """A struct as plain values, with defaults, which the structs of plugins omit when they are encoded."""
    if isinstance(thing, Struct):
        return {field.encode_name: _plain(getattr(thing, field.name)) for field in structs.fields(thing)}
    if isinstance(thing, dict):
        return {str(name): _plain(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_plain(each) for each in thing]
    return msgspec.to_builtins(thing, enc_hook=wire.encodable)

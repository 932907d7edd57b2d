"""A KubeSchedulerConfiguration file as what a scheduler is to do.

The command line and the scheduler's start hand in the parsed file, and readers for settings of plugins that are not the
stock scheduler's. Everything unknown, doubtful or impossible is refused with the path of the field; what is read and
has no effect here is told in `warnings` (kube-scheduler spec 6.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.decode.structs import Wire
from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.api.schedulerconfig import pluginargs, plugins, pluginsets, sections
from numalign.api.schedulerconfig.pluginargs import API_VERSION, Reader
from numalign.api.schedulerconfig.pluginsets import Plugins
from numalign.api.schedulerconfig.sections import ClientConnection, LeaderElection

KIND: Final = "KubeSchedulerConfiguration"
NAME: Final = "numalign"
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
    """None: all of them; 0: fewer the more there are, as the stock scheduler does."""
    plugins: Plugins
    args: Mapping[str, Wire]
    """By plugin, of all that run and have settings; Numalign among them if there is a reader for it."""


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
    fields.only(config, KNOWN)
    warnings: list[str] = []
    _refuse_extenders(config.at("extenders"))
    percentage = _percentage(config.at("percentageOfNodesToScore"))
    profiles = tuple(_profiles(config.at("profiles"), percentage, readers, warnings))
    _flag(config.at("enableContentionProfiling"), True)
    return Configuration(
        profiles=profiles,
        leader_election=sections.leader_election(config.at("leaderElection"), _lease(profiles)),
        client_connection=sections.client_connection(config.at("clientConnection"), warnings),
        pod_initial_backoff_seconds=_number(config.at("podInitialBackoffSeconds"), 1, INT64_MAX, 1),
        pod_max_backoff_seconds=_longest_backoff(config),
        parallelism=_number(config.at("parallelism"), 1, fields.INT32_MAX, 16),
        delay_cache_until_active=_flag(config.at("delayCacheUntilActive"), False),
        enable_profiling=_flag(config.at("enableProfiling"), True),
        warnings=tuple(warnings),
    )


def _refuse_extenders(field: Field) -> None:
    for item in fields.items(field):
        raise item.bad("extenders are not asked by numalign, and leaving one out would change where pods go; remove it")


def _profiles(
    field: Field, percentage: int | None, readers: Mapping[str, Reader], warnings: list[str]
) -> Iterator[Profile]:
    items = list(fields.items(field)) or [structs.replace(field, value={}, path="profiles[0]")]
    places: dict[str, Field] = {}
    for item in items:
        fields.only(item, ("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"))
        name = item.at("schedulerName")
        own = _name(name, alone=len(items) == 1)
        if own in places:
            raise name.bad(f"{errors.echo(own)} is the name of {places[own].path} too; give each its own")
        places[own] = item
        part = _percentage(item.at("percentageOfNodesToScore"))
        running = pluginsets.read(item.at("plugins"), warnings)
        yield Profile(
            scheduler_name=own,
            percentage_of_nodes_to_score=percentage if part is None else part,
            plugins=running,
            args=_args(item.at("pluginConfig"), running, readers, warnings),
        )


def _name(field: Field, *, alone: bool) -> str:
    if alone and not field.given:
        return NAME
    if not field.given or not fields.text(field):
        raise field.bad("missing; write the name that pods have in spec.schedulerName")
    return fields.text(field)


def _args(field: Field, running: Plugins, readers: Mapping[str, Reader], warnings: list[str]) -> dict[str, Wire]:
    """What is written down, and defaults for the others that run."""
    written: dict[str, Field] = {}
    for item in fields.items(field):
        fields.only(item, ("name", "args"))
        name = item.at("name")
        plugin = fields.text(name)
        if plugin in written:
            raise name.bad(f"{errors.echo(plugin)} has settings already; put them together")
        if plugin in plugins.REMOVED:
            raise name.bad(f"{errors.echo(plugin)} is gone; NodeVolumeLimits counts all volumes now")
        written[plugin] = item.at("args")
        if plugin not in {**pluginargs.STOCK, **readers}:
            warnings.append(f"{item.path}: {errors.clipped(plugin)} has no settings that are read here")
    names = [name for name in (*plugins.POINTS, plugins.NUMALIGN) if name in written or running.has(name)]
    left_out = structs.replace(field, value=None)
    read = {name: pluginargs.read(name, written.get(name, left_out), readers) for name in (*names, plugins.NUMALIGN)}
    return {name: args for name, args in read.items() if args is not None}


def _lease(profiles: tuple[Profile, ...]) -> str:
    """Whoever serves all pods takes the stock scheduler's place, and with it its lease."""
    everybody = any(profile.scheduler_name == DEFAULT_SCHEDULER for profile in profiles)
    return STOCK_LEASE if everybody else NAME


def _longest_backoff(config: Field) -> int:
    initial, longest = config.at("podInitialBackoffSeconds"), config.at("podMaxBackoffSeconds")
    least, most = _number(initial, 1, INT64_MAX, 1), _number(longest, 0, INT64_MAX, 10)
    if most < least:
        raise longest.bad(f"{most} is less than podInitialBackoffSeconds ({least})")
    return most


def _percentage(field: Field) -> int | None:
    return fields.integer(field, 0, 100) if field.given else None


def _number(field: Field, low: int, high: int, default: int) -> int:
    return fields.integer(field, low, high) if field.given else default


def _flag(field: Field, default: bool) -> bool:
    return fields.boolean(field) if field.given else default

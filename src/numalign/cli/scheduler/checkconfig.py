"""What a scheduler's configuration comes to, as data and as a page: whom it serves, what runs, with which settings.

`scheduler check-config` prints either. The data have the configuration's own names and are complete; the page tells
settings of plugins only where they are not the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct, structs
from rich.table import Table

from numalign.api.schedulerconfig import durations
from numalign.api.schedulerconfig.configuration import Configuration, Profile
from numalign.api.schedulerconfig.plugins import POINTS, Point
from numalign.cli import drawing
from numalign.placement import settings as engines
from numalign.scheduler import settings

Line = tuple[str, str]


def told(config: Configuration) -> dict[str, Any]:
    """Everything, with nothing left out for being the default."""
    plain: dict[str, Any] = _plain(config)
    return plain


def drawn(config: Configuration) -> str:
    page = drawing.Page()
    page.add(_grid(_process(config)))
    for profile in config.profiles:
        page.add()
        page.add(f"Profile {profile.scheduler_name}")
        page.add(_grid(_profile(profile)), indent=drawing.INDENT)
    return page.text()


def _process(config: Configuration) -> Iterator[Line]:
    own, lease, client = settings.ours(config), config.leader_election, config.client_connection
    yield "serves", ", ".join(f"pods of {profile.scheduler_name}" for profile in config.profiles)
    times = ", ".join(map(durations.text, (lease.lease_duration, lease.renew_deadline, lease.retry_period)))
    name = f"{lease.resource_namespace}/{lease.resource_name}"
    yield "leads", f"by lease {name} ({times})" if lease.leader_elect else "without asking anybody"
    limit = "no limit on calls" if client.qps is None else f"{client.qps:g} calls a second, {client.burst} at once"
    yield "API server", f"{client.kubeconfig or 'credentials of its pod'}; {limit}"
    parked = durations.text(own.pod_max_in_unschedulable_pods_duration)
    backoff = f"{config.pod_initial_backoff_seconds}s to {config.pod_max_backoff_seconds}s"
    yield "backoff", f"{backoff}; tried for no reason after {parked}"
    if any(map(settings.looks_at_zones, config.profiles)):
        zones = settings.engine(config)
        yield "zones", f"{zones.flavour}, {engines.cache_mode(zones)}, {zones.strategy.value}"


def _profile(profile: Profile) -> Iterator[Line]:
    plugins, percentage = profile.plugins, profile.percentage_of_nodes_to_score
    yield "filters", ", ".join(plugins.at[Point.FILTER]) or "none"
    yield "scores", ", ".join(f"{name} x{weight}" for name, weight in plugins.weights.items()) or "none"
    yield (
        "looks at",
        {None: "all nodes", 0: "fewer nodes the more there are"}.get(percentage, f"{percentage}% of nodes"),
    )
    if not settings.looks_at_zones(profile):
        yield "zones", "not looked at: pods are placed by node totals only, and nodes may reject them"
    yield "preempts", "yes" if "DefaultPreemption" in plugins.at[Point.POST_FILTER] else "no"
    left_out = [name for name in POINTS if not plugins.has(name)]
    if left_out:
        yield "left out", ", ".join(left_out)
    for plugin, args in profile.args.items():
        changed = [f"{name} {value}" for name, value in _changes(args, settings.defaults(plugin))]
        if changed:
            yield plugin, ", ".join(changed)


def _changes(args: Struct, default: Struct | None) -> Iterator[tuple[str, str]]:
    """Settings that are not as by default, as paths and short text."""
    for field in structs.fields(args):
        value, usual = getattr(args, field.name), getattr(default, field.name, None)
        if value == usual or value is None:
            continue
        if isinstance(value, Struct):
            yield from ((f"{field.encode_name}.{name}", text) for name, text in _changes(value, usual))
        else:
            yield field.encode_name, _short(_plain(value))


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_short, value)) + "]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{name} {_short(each)}" for name, each in value.items() if each not in (None, [], {}))
            + "}"
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(thing: Any) -> Any:
    if isinstance(thing, Struct):
        return {field.encode_name: _plain(getattr(thing, field.name)) for field in structs.fields(thing)}
    if isinstance(thing, Mapping):
        return {str(name): _plain(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_plain(each) for each in thing]
    return thing.value if isinstance(thing, Enum) else thing


def _grid(lines: Iterator[Line]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(label, text)
    return grid

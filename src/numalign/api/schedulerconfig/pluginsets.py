"""What a profile's lists of plugins come to: who runs at which point, in which order, with which weight.

Lists at a single point and under multiPoint are put together with the defaults as the stock scheduler does it
(kube-scheduler spec 6.2). The plugin for zones runs by default as well; a profile that enables it anywhere has it
exactly as it says, so that a configuration of the Go plugin means here what it means there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.schedulerconfig.plugins import DEFAULTS, MULTI_POINT, POINTS, REMOVED, ZONES, Plugin, Point

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


def read(field: Field, warnings: list[str]) -> Plugins:
    """The plugins of a profile; the defaults where it says nothing."""
    if field.given:
        fields.only(field, (MULTI_POINT, *Point))
    own = {name: _set(field.at(name), warnings) for name in (MULTI_POINT, *Point)} if field.given else {}
    several = _merged(_defaults(own), own.get(MULTI_POINT, PluginSet()))
    plugins = {point: _expanded(point, own.get(point, PluginSet()), several) for point in Point}
    _require_one_queue_and_a_binder(field, plugins)
    return Plugins(at=plugins, weights=_weights(plugins[Point.SCORE], own, several))


def _set(field: Field, warnings: list[str]) -> PluginSet:
    if not field.given:
        return PluginSet()
    fields.only(field, ("enabled", "disabled"))
    enabled: dict[str, Plugin] = {}
    for item in fields.items(field.at("enabled")):
        plugin = _plugin(item, field.path.rpartition(".")[2])
        if plugin.name in enabled:
            raise item.at("name").bad(f"{plugin.name} is enabled twice; remove one")
        enabled[plugin.name] = plugin
    return PluginSet(tuple(enabled.values()), frozenset(_disabled(field.at("disabled"), warnings)))


def _plugin(item: Field, point: str) -> Plugin:
    fields.only(item, ("name", "weight"))
    name, weight = fields.text(item.at("name")), item.at("weight")
    if name in REMOVED:
        raise item.at("name").bad(f"{errors.echo(name)} is gone; NodeVolumeLimits counts all volumes now")
    if name not in POINTS:
        raise item.at("name").bad(f"there is no plugin {errors.echo(name)}; {fields.suggestion(name, POINTS)}")
    if point != MULTI_POINT and point not in POINTS[name]:
        raise item.at("name").bad(f"{name} does nothing at {point}; it can be at {', '.join(POINTS[name])}")
    return Plugin(name, fields.integer(weight, 0, fields.INT32_MAX) if weight.given else 0)


def _disabled(field: Field, warnings: list[str]) -> Iterator[str]:
    for item in fields.items(field):
        fields.only(item, ("name", "weight"))
        name = fields.text(item.at("name"))
        if name != EVERY and name not in POINTS:
            warnings.append(f"{item.at('name').path}: there is no plugin {errors.echo(name)}, so nothing is disabled")
        yield name


def _defaults(own: Mapping[str, PluginSet]) -> tuple[Plugin, ...]:
    named = {plugin.name for each in own.values() for plugin in each.enabled}
    return tuple(plugin for plugin in DEFAULTS if plugin.name != ZONES or ZONES not in named)


def _merged(defaults: tuple[Plugin, ...], own: PluginSet) -> tuple[Plugin, ...]:
    """Defaults that are not disabled, with what the profile says of them, and then its others."""
    said = {plugin.name: plugin for plugin in own.enabled}
    kept = [] if EVERY in own.disabled else [each for each in defaults if each.name not in own.disabled]
    names = {plugin.name for plugin in kept}
    return (*(said.get(each.name, each) for each in kept), *(each for each in own.enabled if each.name not in names))


def _expanded(point: Point, own: PluginSet, several: tuple[Plugin, ...]) -> tuple[str, ...]:
    explicit = [plugin.name for plugin in own.enabled]
    if EVERY in own.disabled:
        return tuple(explicit)
    here = [each.name for each in several if point in POINTS[each.name] and each.name not in own.disabled]
    overriding = [name for name in explicit if name in here]
    added = [name for name in explicit if name not in here]
    return (*overriding, *(name for name in here if name not in explicit), *added)


def _weights(scoring: tuple[str, ...], own: Mapping[str, PluginSet], several: tuple[Plugin, ...]) -> Mapping[str, int]:
    said = {plugin.name: plugin.weight for plugin in several}
    said |= {plugin.name: plugin.weight for plugin in own.get(Point.SCORE, PluginSet()).enabled}
    return {name: said[name] or 1 for name in scoring}


def _require_one_queue_and_a_binder(field: Field, plugins: Mapping[Point, tuple[str, ...]]) -> None:
    if len(plugins[Point.QUEUE_SORT]) != 1:
        raise field.at("queueSort").bad("exactly one plugin has to sort the queue; leave PrioritySort enabled")
    if not plugins[Point.BIND]:
        raise field.at("bind").bad("some plugin has to bind pods; leave DefaultBinder enabled")

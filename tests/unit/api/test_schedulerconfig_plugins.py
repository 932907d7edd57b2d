"""What lists of plugins come to: enabling, disabling, order and weights."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.schedulerconfig import configuration
from numalign.api.schedulerconfig.configuration import Plugins
from numalign.api.schedulerconfig.plugins import POINTS, ZONES, Point

Sets = dict[str, Any]


def effective(value: Sets | None, warnings: list[str] | None = None) -> Plugins:
    field = fields.root({"plugins": value}, "KubeSchedulerConfiguration", "file").at("plugins")
    return configuration.read_plugins(field, [] if warnings is None else warnings)


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def test_by_default_all_run_in_the_stock_order_with_the_stock_weights() -> None:
    plugins = effective(None)
    assert plugins.at[Point.FILTER][:4] == ("NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity")
    assert plugins.at[Point.FILTER][-2:] == ("NodeDeclaredFeatures", ZONES)
    assert plugins.at[Point.POST_FILTER] == ("DynamicResources", "DefaultPreemption")
    assert sum(plugins.weights.values()) == 3 + 2 + 1 + 1 + 2 + 2 + 2 + 1 + 1 + 1


def test_one_can_be_left_out_everywhere() -> None:
    plugins = effective({"multiPoint": {"disabled": named("ImageLocality", ZONES)}})
    assert not plugins.has("ImageLocality")
    assert not plugins.has(ZONES)


def test_one_can_be_left_out_at_a_point() -> None:
    plugins = effective({"score": {"disabled": named("NodeResourcesFit")}})
    assert "NodeResourcesFit" not in plugins.weights
    assert "NodeResourcesFit" in plugins.at[Point.FILTER]


def test_all_can_be_left_out_at_a_point() -> None:
    plugins = effective({"score": {"disabled": named("*"), "enabled": [{"name": "ImageLocality", "weight": 7}]}})
    assert plugins.weights == {"ImageLocality": 7}


def test_without_the_defaults_only_what_is_enabled_runs() -> None:
    some = named("PrioritySort", "DefaultBinder", "NodeResourcesFit")
    plugins = effective({"multiPoint": {"disabled": named("*"), "enabled": some}})
    assert plugins.at[Point.FILTER] == ("NodeResourcesFit",)
    assert plugins.weights == {"NodeResourcesFit": 1}


def test_a_default_that_is_enabled_again_keeps_its_place_with_its_new_weight() -> None:
    plugins = effective({"multiPoint": {"enabled": [{"name": "NodeAffinity", "weight": 9}]}})
    assert list(plugins.weights.items())[:2] == [("TaintToleration", 3), ("NodeAffinity", 9)]


def test_at_a_point_what_is_enabled_there_comes_first_in_its_own_order() -> None:
    plugins = effective({"filter": {"enabled": named("NodePorts", "NodeName")}})
    assert plugins.at[Point.FILTER][:3] == ("NodePorts", "NodeName", "NodeUnschedulable")


def test_a_weight_at_the_point_counts_more_than_one_for_all_points_even_if_it_is_left_out() -> None:
    several = {"enabled": [{"name": "NodeAffinity", "weight": 9}, {"name": "ImageLocality", "weight": 8}]}
    plugins = effective({"multiPoint": several, "score": {"enabled": [{"name": "NodeAffinity"}]}})
    assert (plugins.weights["NodeAffinity"], plugins.weights["ImageLocality"]) == (1, 8)


def test_a_configuration_of_the_go_plugin_has_zones_last_and_only_where_it_says() -> None:
    plugins = effective({"filter": {"enabled": named(ZONES)}, "score": {"enabled": named(ZONES)}})
    assert plugins.at[Point.FILTER][-1] == ZONES
    assert [point for point in Point if ZONES in plugins.at[point]] == [Point.FILTER, Point.SCORE]


REFUSED: dict[str, tuple[Sets, str, str]] = {
    "unknown plugin": (
        {"filter": {"enabled": named("NodeResourceFit")}},
        "plugins.filter.enabled[0].name",
        "did you mean NodeResourcesFit?",
    ),
    "removed plugin": ({"filter": {"enabled": named("EBSLimits")}}, "plugins.filter.enabled[0].name", "was removed"),
    "wrong point": (
        {"score": {"enabled": named("NodeName")}},
        "plugins.score.enabled[0].name",
        "NodeName does nothing at score; it runs at preFilter, filter",
    ),
    "twice": (
        {"filter": {"enabled": named("NodeName", "NodeName")}},
        "plugins.filter.enabled[1].name",
        "enabled twice",
    ),
    "twice for all": (
        {"multiPoint": {"enabled": named("NodeName", "NodeName")}},
        "plugins.multiPoint.enabled[1].name",
        "twice",
    ),
    "negative weight": (
        {"score": {"enabled": [{"name": "ImageLocality", "weight": -1}]}},
        "plugins.score.enabled[0].weight",
        "-1 is not between 0",
    ),
    "unknown point": ({"filters": {}}, "plugins.filters", "did you mean filter?"),
    "unknown list": ({"filter": {"enable": []}}, "plugins.filter.enable", "did you mean enabled?"),
    "no name": ({"filter": {"enabled": [{}]}}, "plugins.filter.enabled[0].name", "missing; a text is wanted"),
    "nobody sorts": ({"queueSort": {"disabled": named("*")}}, "plugins.queueSort", "exactly one plugin"),
    "nobody binds": ({"multiPoint": {"disabled": named("DefaultBinder")}}, "plugins.bind", "some plugin has to bind"),
}


@pytest.mark.parametrize("value, field, why", REFUSED.values(), ids=REFUSED)
def test_refused(value: Sets, field: str, why: str) -> None:
    with pytest.raises(errors.BadObject) as raised:
        effective(value)
    assert raised.value.field == field
    assert why in raised.value.why


def test_disabling_an_unknown_plugin_is_a_warning() -> None:
    warnings: list[str] = []
    effective({"multiPoint": {"disabled": named("Coscheduling")}}, warnings)
    assert warnings == [
        'plugins.multiPoint.disabled[0].name: there is no plugin "Coscheduling", so nothing is disabled'
    ]


@pytest.mark.parametrize("plugin", POINTS)
def test_every_plugin_can_be_enabled_where_it_does_something(plugin: str) -> None:
    for point in POINTS[plugin]:
        assert plugin in effective({point: {"enabled": named(plugin)}}).at[point]

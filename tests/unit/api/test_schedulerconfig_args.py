"""Settings of plugins: defaults, limits, and the path of what breaks them."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api import errors
from numalign.api.decode import fields
from numalign.api.decode.structs import Wire
from numalign.api.schedulerconfig import pluginargs

Args = dict[str, Any]


def read(plugin: str, args: Args | None) -> Wire | None:
    return pluginargs.read(plugin, fields.root({"args": args}, "KubeSchedulerConfiguration", "file").at("args"), {})


def test_defaults_are_those_of_the_stock_scheduler() -> None:
    read_all = {plugin: read(plugin, None) for plugin in pluginargs.STOCK}
    assert read_all == {plugin: read(plugin, {}) for plugin in pluginargs.STOCK}
    preemption: Any = read_all["DefaultPreemption"]
    fit: Any = read_all["NodeResourcesFit"]
    assert (preemption.min_candidate_nodes_percentage, preemption.min_candidate_nodes_absolute) == (10, 100)
    assert [(each.name, each.weight) for each in fit.scoring_strategy.resources] == [("cpu", 1), ("memory", 1)]


def test_kind_and_version_may_be_there() -> None:
    meta = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "InterPodAffinityArgs"}
    args: Any = read("InterPodAffinity", {**meta, "hardPodAffinityWeight": 5})
    assert args.hard_pod_affinity_weight == 5


def test_a_plugin_without_settings_has_none() -> None:
    assert read("NodeName", {}) is None


@pytest.mark.parametrize("resources", [[], None])
def test_no_resources_are_cpu_and_memory(resources: list[Any] | None) -> None:
    args: Any = read("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "resources": resources}})
    assert [each.name for each in args.scoring_strategy.resources] == ["cpu", "memory"]


def test_a_weight_of_nothing_is_one() -> None:
    args: Any = read("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}, {"name": "x/y", "weight": 0}]})
    assert [each.weight for each in args.resources] == [1, 1]


def test_the_shape_of_a_ratio_is_kept() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    args: Any = read("NodeResourcesFit", {"scoringStrategy": strategy})
    assert [each.score for each in args.scoring_strategy.requested_to_capacity_ratio.shape] == [0, 10]


def test_constraints_of_a_list_are_kept() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    args: Any = read("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint]})
    assert args.default_constraints[0].max_skew == 1


def test_timeouts_are_lengths_of_time() -> None:
    args: Any = read("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "1m"})
    assert (args.filter_timeout, args.binding_timeout) == (0, 60)


def term(**requirement: Any) -> Args:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def strategy(**values: Any) -> Args:
    return {"scoringStrategy": values}


def constraint(**values: Any) -> Args:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", **values}
    return {"defaultingType": "List", "defaultConstraints": [whole]}


TERM = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
REFUSED: dict[str, tuple[str, Args, str, str]] = {
    "other kind": ("VolumeBinding", {"kind": "NodeAffinityArgs"}, "kind", "is not VolumeBindingArgs"),
    "other version": ("VolumeBinding", {"apiVersion": "v2"}, "apiVersion", "write that"),
    "unknown": ("InterPodAffinity", {"weight": 1}, "weight", "no field of this name"),
    "unknown deep inside": (
        "NodeResourcesFit",
        strategy(type="LeastAllocated", resources=[{"name": "cpu", "wait": 1}]),
        "scoringStrategy.resources[0].wait",
        "did you mean weight?",
    ),
    "wrong type": (
        "InterPodAffinity",
        {"hardPodAffinityWeight": "1"},
        "hardPodAffinityWeight",
        "expected a whole number",
    ),
    "share": ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage", "0 and 100"),
    "negative": ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute", "-1 is not"),
    "none at all": (
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
        "minCandidateNodesPercentage",
        "cannot be 0 together",
    ),
    "hard weight": ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight", "between 0 and 100"),
    "no type": ("NodeResourcesFit", strategy(resources=[]), "scoringStrategy.type", "null is not one of"),
    "other type": ("NodeResourcesFit", strategy(type="Most"), "scoringStrategy.type", '"Most" is not one of'),
    "weight": (
        "NodeResourcesFit",
        strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
        "scoringStrategy.resources[0].weight",
        "101 is not between 1 and 100",
    ),
    "ratio missing": (
        "NodeResourcesFit",
        strategy(type="RequestedToCapacityRatio"),
        "scoringStrategy.requestedToCapacityRatio",
        "missing",
    ),
    "ratio not asked for": (
        "NodeResourcesFit",
        strategy(type="MostAllocated", requestedToCapacityRatio={"shape": []}),
        "scoringStrategy.requestedToCapacityRatio",
        "remove it",
    ),
    "no points": (
        "NodeResourcesFit",
        strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": []}),
        "scoringStrategy.requestedToCapacityRatio.shape",
        "at least one point",
    ),
    "unsorted": (
        "VolumeBinding",
        {"shape": [{"utilization": 5, "score": 1}, {"utilization": 5, "score": 2}]},
        "shape[1].utilization",
        "sort them",
    ),
    "score": ("VolumeBinding", {"shape": [{"utilization": 5, "score": 11}]}, "shape[0].score", "between 0 and 10"),
    "time": ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds", "-1 is not between 0"),
    "resource": (
        "NodeResourcesFit",
        {"ignoredResources": ["a b"]},
        "ignoredResources[0]",
        "not the name of a resource",
    ),
    "group": (
        "NodeResourcesFit",
        {"ignoredResourceGroups": ["a/b"]},
        "ignoredResourceGroups[0]",
        "is not the group of a resource",
    ),
    "balance weight": (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu", "weight": 2}]},
        "resources[0].weight",
        "2 is not 1",
    ),
    "balance twice": (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
        "resources[1].name",
        "there twice",
    ),
    "defaulting": ("PodTopologySpread", {"defaultingType": "Mine"}, "defaultingType", "is not one of System, List"),
    "system and list": (
        "PodTopologySpread",
        {**constraint(), "defaultingType": "System"},
        "defaultingType",
        "write List",
    ),
    "skew": ("PodTopologySpread", constraint(maxSkew=0), "defaultConstraints[0].maxSkew", "0 is not between 1"),
    "key": ("PodTopologySpread", constraint(topologyKey=""), "defaultConstraints[0].topologyKey", "name of a label"),
    "action": (
        "PodTopologySpread",
        constraint(whenUnsatisfiable="Never"),
        "defaultConstraints[0].whenUnsatisfiable",
        "is not one of",
    ),
    "selector": (
        "PodTopologySpread",
        constraint(labelSelector={}),
        "defaultConstraints[0].labelSelector",
        "is not allowed",
    ),
    "same constraint": (
        "PodTopologySpread",
        {"defaultingType": "List", "defaultConstraints": constraint()["defaultConstraints"] * 2},
        "defaultConstraints[1]",
        "remove one",
    ),
    "no terms": (
        "NodeAffinity",
        {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
        TERM,
        "at least one term",
    ),
    "operator": ("NodeAffinity", term(key="a", operator="Is"), f"{TERM}[0].matchExpressions[0].operator", "one of"),
    "label": (
        "NodeAffinity",
        term(key="-", operator="Exists"),
        f"{TERM}[0].matchExpressions[0].key",
        "name of a label",
    ),
    "values missing": ("NodeAffinity", term(key="a", operator="In"), f"{TERM}[0].matchExpressions[0].values", "needs"),
    "values not wanted": (
        "NodeAffinity",
        term(key="a", operator="Exists", values=["x"]),
        f"{TERM}[0].matchExpressions[0].values",
        "takes no values",
    ),
    "not a number": (
        "NodeAffinity",
        term(key="a", operator="Gt", values=["x"]),
        f"{TERM}[0].matchExpressions[0].values",
        "one whole number",
    ),
    "preference": (
        "NodeAffinity",
        {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0}]}},
        "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
        "between 1 and 100",
    ),
    "binding": ("DynamicResources", {"bindingTimeout": "500ms"}, "bindingTimeout", "less than 1s"),
    "filtering": ("DynamicResources", {"filterTimeout": "-1s"}, "filterTimeout", "less than 0s"),
}


@pytest.mark.parametrize("plugin, args, field, why", REFUSED.values(), ids=REFUSED)
def test_refused(plugin: str, args: Args, field: str, why: str) -> None:
    with pytest.raises(errors.BadObject) as raised:
        read(plugin, args)
    assert raised.value.field == f"args.{field}"
    assert why in raised.value.why

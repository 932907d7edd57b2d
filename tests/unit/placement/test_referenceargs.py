from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numalign.api.decode import structs
from numalign.api.errors import BadObject
from numalign.placement import referenceargs
from numalign.placement.referenceargs import CacheArgs, NodeResourceTopologyMatchArgs, ScoringStrategy

CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
STRATEGY = {"type": "LeastAllocated", "resources": CPU_AND_MEMORY}
CACHE = {"foreignPodsDetect": "All", "resyncMethod": "Autodetect", "informerMode": "Dedicated"}
DEFAULTS = {"scoringStrategy": STRATEGY, "cache": CACHE, "preemptionMode": "Disabled"}

DEFAULTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "preemption": ({"preemptionMode": "Enabled"}, {"preemptionMode": "Enabled"}),
    "a strategy without resources": (
        {"scoringStrategy": {"type": "MostAllocated"}},
        {"scoringStrategy": {"type": "MostAllocated", "resources": CPU_AND_MEMORY}},
    ),
    "a resource without weight": (
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}},
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
    ),
    "a part of the cache": (
        {"cache": {"resyncScope": "All", "informerMode": "Shared"}},
        {"cache": {**CACHE, "informerMode": "Shared", "resyncScope": "All"}},
    ),
    "what has no default": (
        {"cacheResyncPeriodSeconds": 5, "discardReservedNodes": False},
        {"cacheResyncPeriodSeconds": 5, "discardReservedNodes": False},
    ),
    "unknown fields": ({"kubeconfigPath": "x", "cache": {"colour": "red"}}, {}),
}


@pytest.mark.parametrize("raw, changed", DEFAULTED.values(), ids=DEFAULTED)
def test_what_is_left_out_is_filled_in(raw: dict[str, Any], changed: dict[str, Any]) -> None:
    assert msgspec.json.decode(structs.encode(referenceargs.complete(raw))) == {**DEFAULTS, **changed}


@pytest.mark.parametrize("version", ["v1", "v1beta3"])
def test_both_versions_are_read(version: str) -> None:
    raw = {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": referenceargs.KIND,
        "cacheResyncPeriodSeconds": 7,
    }
    assert referenceargs.complete(raw).cache_resync_period_seconds == 7


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown strategy": (
        {"scoringStrategy": {"type": "leastallocated"}},
        'scoringStrategy.type: Invalid value: "leastallocated": invalid ScoringStrategyType',
    ),
    "strategy without a type": (
        {"scoringStrategy": {}},
        'scoringStrategy.type: Invalid value: "": invalid ScoringStrategyType',
    ),
    "unknown mode": ({"preemptionMode": "On"}, 'preemptionMode: Invalid value: "On": invalid PreemptionMode'),
    "another kind": ({"kind": "NodeResourcesFitArgs"}, "kind"),
    "another version": ({"apiVersion": "kubescheduler.config.k8s.io/v2"}, "apiVersion"),
    "no number": ({"cacheResyncPeriodSeconds": "often"}, "cacheResyncPeriodSeconds"),
}


@pytest.mark.parametrize("raw, complaint", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_is_refused_with_its_field(raw: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadObject) as bad:
        referenceargs.complete(raw)
    assert complaint in str(bad.value)


def test_all_complaints_are_one_text() -> None:
    wrong = NodeResourceTopologyMatchArgs(scoring_strategy=ScoringStrategy(type="x"), preemption_mode="y")
    text = referenceargs.aggregated(referenceargs.problems(wrong))
    assert text.startswith("[scoringStrategy.type: Invalid value: ")
    assert text.endswith(', preemptionMode: Invalid value: "y": invalid PreemptionMode]')
    assert referenceargs.aggregated(()) == ""


def test_weights_below_one_count_as_one_and_the_last_of_a_name_wins() -> None:
    listed = [("cpu", -3), ("memory", 2), ("memory", 5), ("nic", 0)]
    resources = [{"name": name, "weight": weight} for name, weight in listed]
    complete = referenceargs.complete({"scoringStrategy": {"type": "MostAllocated", "resources": resources}})
    assert referenceargs.weights(complete) == {"cpu": 1, "memory": 5, "nic": 1}


EFFECTS: dict[str, tuple[Any, str, str, str]] = {
    "foreign pods": (referenceargs.foreign_pods_detect, "foreignPodsDetect", "All", "All"),
    "resync method": (referenceargs.resync_method, "resyncMethod", "Autodetect", "All"),
    "informer mode": (referenceargs.informer_mode, "informerMode", "Shared", "Shared"),
    "resync scope": (referenceargs.resync_scope, "resyncScope", "All", "OnlyResources"),
}


@pytest.mark.parametrize("effect, field, absent, unknown", EFFECTS.values(), ids=EFFECTS)
def test_absent_and_unknown_settings_have_a_meaning(effect: Any, field: str, absent: str, unknown: str) -> None:
    assert effect(None) == effect(CacheArgs()) == absent
    assert effect(msgspec.convert({field: "all"}, CacheArgs)) == unknown


KNOWN = [
    (referenceargs.foreign_pods_detect, "foreignPodsDetect", list(referenceargs.ForeignPodsDetect)),
    (referenceargs.resync_method, "resyncMethod", list(referenceargs.ResyncMethod)),
    (referenceargs.informer_mode, "informerMode", list(referenceargs.InformerMode)),
    (referenceargs.resync_scope, "resyncScope", list(referenceargs.ResyncScope)),
]


@pytest.mark.parametrize("effect, field, values", KNOWN, ids=[field for _, field, _ in KNOWN])
def test_known_settings_mean_themselves(effect: Any, field: str, values: list[str]) -> None:
    assert [effect(msgspec.convert({field: value}, CacheArgs)) for value in values] == values

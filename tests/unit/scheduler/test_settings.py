"""The configuration as our scheduler reads it: settings of the Go plugin, and our own."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api import errors
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.placement.referenceargs import Strategy
from numalign.scheduler import settings
from numalign.scheduler.settings import NumalignArgs

META = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
ZONES = "NodeResourceTopologyMatch"


def read(*profiles: dict[str, dict[str, Any]], **values: Any) -> Configuration:
    """Profiles as settings by plugin."""
    written = [
        {"schedulerName": f"s{number}", "pluginConfig": [{"name": name, "args": args} for name, args in each.items()]}
        for number, each in enumerate(profiles)
    ]
    return settings.read({**META, "profiles": written, **values}, "file")


def refusal(*profiles: dict[str, dict[str, Any]]) -> tuple[str, str]:
    with pytest.raises(errors.BadObject) as raised:
        read(*profiles)
    return raised.value.field, raised.value.why


def test_without_a_word_the_engine_is_exact() -> None:
    engine = settings.engine(read())
    assert (engine.flavour, engine.cache_mode, engine.strategy) == ("exact", None, Strategy.LEAST_ALLOCATED)
    assert (engine.weights, engine.profiles) == ({"cpu": 1, "memory": 1}, ("numalign",))


@pytest.mark.parametrize("version", ["v1", "v1beta3"])
def test_settings_of_the_go_plugin_are_read_in_full(version: str) -> None:
    written = {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "NodeResourceTopologyMatchArgs",
        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 5}]},
        "cacheResyncPeriodSeconds": 5,
        "discardReservedNodes": True,
        "cache": {
            "foreignPodsDetect": "OnlyExclusiveResources",
            "resyncMethod": "All",
            "informerMode": "Shared",
            "resyncScope": "OnlyResources",
        },
        "preemptionMode": "Enabled",
    }
    config = read({ZONES: written, "Numalign": {"flavour": "reference"}})
    engine, zones = settings.engine(config), settings.zones(config)
    assert (engine.strategy, engine.weights, engine.reference) == (Strategy.MOST_ALLOCATED, {"cpu": 5}, zones)
    assert (zones.cache_resync_period_seconds, zones.discard_reserved_nodes, zones.preemption_mode) == (
        5,
        True,
        "Enabled",
    )
    assert (zones.cache and zones.cache.resync_scope, config.warnings) == ("OnlyResources", ())


def test_our_own_settings() -> None:
    written = {
        "apiVersion": "numalign.io/v1alpha1",
        "kind": "NumalignArgs",
        "flavour": "reference",
        "cacheMode": "overReserve",
        "trustBindOrder": True,
        "liveShapes": 10,
        "seed": 7,
        "parallelBinds": 3,
        "podMaxInUnschedulablePodsDuration": "1m30s",
        "deleteRejectedPods": True,
        "keepDeletedReports": "0s",
    }
    assert settings.ours(read({"Numalign": written})) == NumalignArgs(
        flavour="reference",
        cache_mode="overReserve",
        trust_bind_order=True,
        live_shapes=10,
        seed=7,
        parallel_binds=3,
        pod_max_in_unschedulable_pods_duration=90,
        delete_rejected_pods=True,
        keep_deleted_reports=0,
    )


def test_the_queue_is_set_from_both() -> None:
    config = read({"Numalign": {"podMaxInUnschedulablePodsDuration": "1m"}}, podInitialBackoffSeconds=2)
    waiting = settings.waiting(config)
    assert (waiting.backoff.initial, waiting.backoff.longest, waiting.longest_parked) == (2, 10, 60)


@pytest.mark.parametrize(
    "plugin, args, field, why",
    [
        (ZONES, {"scoringStrategy": {}}, "scoringStrategy.type", "invalid ScoringStrategyType"),
        (ZONES, {"scoringStrategy": {"type": "Best"}}, "scoringStrategy.type", "write one of LeastAllocated, Most"),
        (ZONES, {"preemptionMode": "On"}, "preemptionMode", "invalid PreemptionMode; write one of Disabled, Enabled"),
        (ZONES, {"discardReservedNodes": "yes"}, "discardReservedNodes", "expected true or false, got a string"),
        (ZONES, {"cache": {"resync": "All"}}, "cache.resync", "no field of this name"),
        (ZONES, {"apiVersion": "kubescheduler.config.k8s.io/v2"}, "apiVersion", "write that"),
        (ZONES, {"cacheResyncPeriodSeconds": "5"}, "cacheResyncPeriodSeconds", "expected a whole number"),
        ("Numalign", {"flavor": "exact"}, "flavor", "did you mean flavour?"),
        ("Numalign", {"flavour": "best"}, "flavour", "is not one of exact, reference"),
        ("Numalign", {"cacheMode": "overReserve"}, "cacheMode", 'does not go with flavour "exact"'),
        ("Numalign", {"liveShapes": 0}, "liveShapes", "0 is not between 1"),
        ("Numalign", {"seed": -1}, "seed", "-1 is not between 0"),
        ("Numalign", {"podMaxInUnschedulablePodsDuration": "-1s"}, "podMaxInUnschedulablePodsDuration", "negative"),
    ],
)
def test_refused(plugin: str, args: dict[str, Any], field: str, why: str) -> None:
    found = refusal({plugin: args})
    assert found[0] == f"profiles[0].pluginConfig[0].args.{field}"
    assert why in found[1]


def test_each_profile_says_what_it_does_with_nodes_without_a_report() -> None:
    patient = {"Numalign": {"nodesWithoutReport": "wait", "firstReportGracePeriod": "5m", "seed": 7}}
    config = read(patient, {"Numalign": {"nodesWithoutReport": "refuse"}}, {})
    found = [profile.args["Numalign"] for profile in config.profiles]
    assert found == [
        NumalignArgs(seed=7, first_report_grace_period=300.0),
        NumalignArgs(seed=7, nodes_without_report="refuse"),
        NumalignArgs(seed=7),
    ]


def test_settings_cannot_be_given_twice() -> None:
    twice = [{"name": ZONES}, {"name": ZONES}]
    with pytest.raises(errors.BadObject, match=r"profiles\[0\]\.pluginConfig\[1\]\.name: .*has arguments already"):
        settings.read({**META, "profiles": [{"pluginConfig": twice}]}, "file")


@pytest.mark.parametrize(
    "plugin, first, second",
    [
        ("Numalign", {"seed": 1}, {"seed": 2}),
        ("Numalign", {"flavour": "exact"}, {"flavour": "reference"}),
        ("Numalign", {"flavour": "reference"}, {"flavour": "exact"}),
        (ZONES, {"scoringStrategy": {"type": "MostAllocated"}}, {"scoringStrategy": {"type": "LeastAllocated"}}),
    ],
    ids=["both unusual", "the default written down first", "the default written down last", "strategies"],
)
def test_profiles_share_one_engine(plugin: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    field, why = refusal({plugin: first}, {plugin: second})
    assert (field, "share one engine" in why) == ("profiles[1].pluginConfig[0].args", True)


def test_a_profile_that_names_the_kind_of_its_settings_alone_says_nothing() -> None:
    config = read({"Numalign": {"kind": "NumalignArgs"}}, {"Numalign": {"flavour": "reference"}})
    assert settings.engine(config).flavour == "reference"


def test_what_one_profile_says_counts_for_those_that_say_nothing() -> None:
    config = read({}, {ZONES: {"scoringStrategy": {"type": "LeastNUMANodes"}}}, {"Numalign": {"seed": 3}})
    assert settings.engine(config).strategy is Strategy.LEAST_NUMA_NODES
    assert [profile.args[ZONES] for profile in config.profiles] == [settings.zones(config)] * 3
    assert settings.ours(config).seed == 3


def test_a_value_that_the_go_plugin_takes_for_another_one_is_warned_about() -> None:
    (warning,) = read({ZONES: {"cache": {"resyncScope": "Everything"}}}).warnings
    assert warning == (
        f'{ZONES}: unknown value for cache.resyncScope: "Everything"; using OnlyResources, as the Go plugin does'
    )


def test_cache_settings_without_effect_on_the_ledger_are_warned_about() -> None:
    (warning,) = read({ZONES: {"cacheResyncPeriodSeconds": 5}}).warnings
    assert "apply to flavour reference only" in warning


def test_settings_of_plugins_that_are_not_there_are_warned_about() -> None:
    (warning,) = read({"Coscheduling": {"permitWaitingTimeSeconds": 10}}).warnings
    assert warning == "profiles[0].pluginConfig[0]: Coscheduling has no arguments that numalign reads"


def test_defaults_are_what_nothing_is_read_as() -> None:
    assert settings.defaults("Numalign") == NumalignArgs()
    assert settings.defaults("NodeName") is None


CACHES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nothing": ({}, {}, "passthrough"),
    "a period": ({"cacheResyncPeriodSeconds": 5}, {}, "overReserve"),
    "discarding": ({"discardReservedNodes": True, "cacheResyncPeriodSeconds": 5}, {}, "discardReserved"),
    "our own word": ({"discardReservedNodes": True}, {"cacheMode": "overReserve"}, "overReserve"),
}


@pytest.mark.parametrize("zones, own, mode", CACHES.values(), ids=CACHES)
def test_with_the_go_plugins_decisions_goes_the_cache_of_its_settings(zones: Any, own: Any, mode: str) -> None:
    config = read({ZONES: zones, "Numalign": {"flavour": "reference", **own}})
    assert settings.engine(config).cache_mode == mode
    assert config.warnings == ()


def test_a_scheduler_of_all_pods_takes_kube_schedulers_lease() -> None:
    names = [{"schedulerName": "default-scheduler"}, {"schedulerName": "numalign"}]
    lease = settings.read({**META, "profiles": names}, "file").leader_election
    assert (lease.resource_namespace, lease.resource_name) == ("kube-system", "kube-scheduler")


def without(point: str, plugin: str) -> Configuration:
    """Two profiles, of which the first disables the plugin."""
    first = {"schedulerName": "s", "plugins": {point: {"disabled": [{"name": plugin}]}}}
    return settings.read({**META, "profiles": [first, {"schedulerName": "t"}]}, "file")


def test_scheduling_gates_cannot_be_switched_off() -> None:
    (warning,) = without("preEnqueue", "SchedulingGates").warnings
    assert warning.startswith("profile s: SchedulingGates runs at ")


@pytest.mark.parametrize("point", ["filter", "multiPoint"])
def test_a_profile_may_disable_the_zone_plugin(point: str) -> None:
    config = without(point, ZONES)
    assert [settings.looks_at_zones(profile) for profile in config.profiles] == [False, True]
    assert settings.engine(config).profiles == ("t",)
    assert config.warnings == (f"profile s: {ZONES} does not filter, so pods are placed by node totals only",)


def test_without_its_score_the_zone_plugin_still_filters() -> None:
    config = without("score", ZONES)
    assert (all(map(settings.looks_at_zones, config.profiles)), config.warnings) == (True, ())


def test_parallelism_without_effect_is_warned_about() -> None:
    assert read(parallelism=16).warnings == ()
    assert read(parallelism=32).warnings == ("parallelism: ignored; all nodes are evaluated at once",)

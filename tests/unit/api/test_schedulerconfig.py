"""A KubeSchedulerConfiguration: what is taken from it, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api import errors
from numalign.api.decode import yamltext
from numalign.api.schedulerconfig import configuration
from numalign.api.schedulerconfig.configuration import Configuration

META = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def read(**values: Any) -> Configuration:
    return configuration.read({**META, **values}, "scheduler.yaml")


def refusal(**values: Any) -> tuple[str, str]:
    """The field, and why."""
    with pytest.raises(errors.BadObject) as raised:
        read(**values)
    assert (raised.value.kind, raised.value.name) == ("KubeSchedulerConfiguration", "scheduler.yaml")
    return raised.value.field, raised.value.why


def test_an_empty_configuration_has_all_defaults() -> None:
    config = read()
    (profile,) = config.profiles
    assert (profile.scheduler_name, profile.percentage_of_nodes_to_score) == ("numalign", None)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds, config.parallelism) == (1, 10, 16)
    election = config.leader_election
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (15, 10, 2)
    assert (config.client_connection.kubeconfig, config.client_connection.qps, config.warnings) == ("", None, ())


def test_every_field_can_be_set() -> None:
    config = read(
        parallelism=4,
        leaderElection={
            "leaderElect": True,
            "leaseDuration": "1m",
            "renewDeadline": "40s",
            "retryPeriod": "500ms",
            "resourceLock": "leases",
            "resourceName": "mine",
            "resourceNamespace": "numa",
        },
        clientConnection={"kubeconfig": "k.conf", "qps": 500, "burst": 1000, "contentType": "application/json"},
        enableProfiling=False,
        enableContentionProfiling=False,
        percentageOfNodesToScore=50,
        podInitialBackoffSeconds=2,
        podMaxBackoffSeconds=20,
        delayCacheUntilActive=True,
        profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 0}],
    )
    assert [(each.scheduler_name, each.percentage_of_nodes_to_score) for each in config.profiles] == [
        ("a", 50),
        ("b", 0),
    ]
    assert (config.leader_election.lease_duration, config.leader_election.retry_period) == (60, 0.5)
    assert (config.leader_election.resource_name, config.client_connection.qps) == ("mine", 500)
    assert (config.parallelism, config.delay_cache_until_active, config.enable_profiling) == (4, True, False)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (2, 20)


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown field": ({"percentageOfNodes": 3}, "percentageOfNodes", "did you mean percentageOfNodesToScore?"),
    "other version": ({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "apiVersion", "is not kubescheduler"),
    "other kind": ({"kind": "KubeletConfiguration"}, "kind", "is not KubeSchedulerConfiguration"),
    "no kind": ({"kind": None}, "kind", "missing; add"),
    "no workers": ({"parallelism": 0}, "parallelism", "0 is not between 1 and 2147483647"),
    "too much": ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore", "101 is not between 0 and 100"),
    "text for a number": ({"parallelism": "16"}, "parallelism", '"16" is not a whole number'),
    "no backoff": ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds", "0 is not between 1"),
    "less than the first": (
        {"podInitialBackoffSeconds": 20},
        "podMaxBackoffSeconds",
        "10 is less than podInitialBackoffSeconds (20)",
    ),
    "not yes or no": ({"delayCacheUntilActive": "yes"}, "delayCacheUntilActive", "neither true nor false"),
    "extender": ({"extenders": [{"urlPrefix": "http://x"}]}, "extenders[0]", "extenders are not supported"),
    "lease too short": (
        {"leaderElection": {"leaseDuration": "5s"}},
        "leaderElection.leaseDuration",
        "not longer than renewDeadline (10s)",
    ),
    "renewed too late": (
        {"leaderElection": {"retryPeriod": "9s"}},
        "leaderElection.renewDeadline",
        "not longer than 1.2 times retryPeriod (9s)",
    ),
    "negative time": (
        {"leaderElection": {"retryPeriod": "-2s"}},
        "leaderElection.retryPeriod",
        "not greater than 0",
    ),
    "time as a number": ({"leaderElection": {"retryPeriod": 2}}, "leaderElection.retryPeriod", "2 is not text"),
    "no time": ({"leaderElection": {"retryPeriod": "2 s"}}, "leaderElection.retryPeriod", "not a length of time"),
    "old lock": (
        {"leaderElection": {"resourceLock": "endpointsleases"}},
        "leaderElection.resourceLock",
        "is not leases",
    ),
    "unknown in a part": ({"leaderElection": {"lease": "5s"}}, "leaderElection.lease", "no field of this name"),
    "no number of calls": ({"clientConnection": {"qps": "50"}}, "clientConnection.qps", "is not a number of calls"),
    "negative burst": ({"clientConnection": {"burst": -1}}, "clientConnection.burst", "-1 is not between 0"),
    "no list": ({"profiles": {"schedulerName": "a"}}, "profiles", "an object is not a list"),
    "unknown in a profile": ({"profiles": [{"name": "a"}]}, "profiles[0].name", "no field of this name"),
    "same name": (
        {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
        "profiles[1].schedulerName",
        '"a" is the name of profiles[0] too',
    ),
    "no name beside others": (
        {"profiles": [{"schedulerName": "a"}, {}]},
        "profiles[1].schedulerName",
        "missing; write the name",
    ),
    "empty name": ({"profiles": [{"schedulerName": ""}]}, "profiles[0].schedulerName", "missing; write the name"),
}


@pytest.mark.parametrize("values, field, why", REFUSED.values(), ids=REFUSED)
def test_refused(values: dict[str, Any], field: str, why: str) -> None:
    found = refusal(**values)
    assert found[0] == field
    assert why in found[1]


def test_a_field_that_is_there_twice_is_refused_with_its_line() -> None:
    with pytest.raises(errors.BadObject, match=r'line 2.*"parallelism" is there twice'):
        yamltext.documents("parallelism: 1\nparallelism: 2\n", "scheduler.yaml")


def test_what_is_wrong_with_a_lease_does_not_matter_to_who_does_not_ask_for_one() -> None:
    assert not read(leaderElection={"leaderElect": False, "leaseDuration": "1s"}).leader_election.leader_elect


@pytest.mark.parametrize(
    "names, lease",
    [(["default-scheduler"], "kube-scheduler"), (["a", "default-scheduler"], "kube-scheduler"), (["a"], "numalign")],
)
def test_who_serves_all_pods_takes_the_lease_of_the_stock_scheduler(names: list[str], lease: str) -> None:
    assert read(profiles=[{"schedulerName": name} for name in names]).leader_election.resource_name == lease


@pytest.mark.parametrize("qps, limit", [(0, None), (-1, None), (20.5, 20.5)])
def test_calls_are_limited_only_if_asked_for(qps: float, limit: float | None) -> None:
    assert read(clientConnection={"qps": qps}).client_connection.qps == limit


def test_other_content_types_have_no_effect_and_a_warning() -> None:
    (warning,) = read(clientConnection={"contentType": "application/vnd.kubernetes.protobuf"}).warnings
    assert warning.startswith("clientConnection.contentType: has no effect; objects are sent as application/json")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*configuration.KNOWN, "name", "enabled", "args"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def judged(values: dict[str, Any]) -> str | Configuration:
    """The configuration, or the path of what is wrong with it."""
    try:
        return read(**values)
    except errors.BadObject as problem:
        return problem.field


@given(st.dictionaries(st.sampled_from(configuration.KNOWN), ANYTHING))
def test_whatever_is_written_is_read_or_refused_with_a_path(values: dict[str, Any]) -> None:
    assert judged(values)

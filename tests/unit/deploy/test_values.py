"""A values file is merged into the defaults as Helm does it, or refused with the field and what is allowed there."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.deploy import model, values
from tests.strategies.values import documents

OPERATED: dict[str, Any] = {"agent": {"enabled": False}, "scheduler": {"enabled": False}}
REFUSED = [
    ({"scheduler": {"replcas": 1}}, "scheduler.replcas: no field of this name; did you mean replicas?"),
    ({"scheduler": {"mode": "primary"}}, 'scheduler.mode: "primary" is not one of extender, only, secondary'),
    (
        {"scheduler": {"mode": "extender"}},
        "scheduler.tls: an extender needs a certificate that kube-scheduler can verify",
    ),
    (
        {"scheduler": {"mode": "extender", "tls": {"secretName": "mine"}}},
        "scheduler.extender.clientCaSecret: missing; kube-scheduler sends a certificate, and no token",
    ),
    (
        {"scheduler": {"expanderPort": 8444}},
        "scheduler.expanderPort: needs a certificate that cluster-autoscaler can verify: scheduler.tls",
    ),
    ({"scheduler": {"replicas": 99}}, "scheduler.replicas: 99 is not between 0 and 10"),
    ({"scheduler": {"replicas": "2"}}, 'scheduler.replicas: "2" is not a whole number; write one from 0 to 10'),
    ({"scheduler": {"replicas": None}}, "scheduler.replicas: null; leave the field out for its default"),
    ({"scheduler": None}, "scheduler: null; leave the field out for its default"),
    ({"scheduler": []}, "scheduler: a list is not a mapping of names to values"),
    ({"scheduler": {"nodeSelector": {"a": 1}}}, "scheduler.nodeSelector[a]: 1 is not text; put it in quotes"),
    ({"scheduler": {"config": {"profiles": 3}}}, "scheduler.config.profiles: 3 is not a list"),
    (
        {"scheduler": {"config": {"leaderElection": 3}}},
        "scheduler.config.leaderElection: 3 is not a mapping of names to values",
    ),
    (
        {"scheduler": {"config": {"leaderElection": {"leaderElect": False}}}},
        "scheduler.replicas: more than one needs leader election, which scheduler.config turns off",
    ),
    (
        {"scheduler": {"config": {"profiles": [{"schedulerName": "default-scheduler"}]}}},
        "scheduler.mode: default-scheduler is kube-scheduler's; to replace kube-scheduler, set the mode to only",
    ),
    (
        {"scheduler": {"tls": {"secretName": "own", "certManager": {"enabled": True}}}},
        "scheduler.tls: secretName and certManager.enabled exclude each other",
    ),
    ({"scheduler": {"image": {"digest": "x"}}}, 'scheduler.image.digest: "x" is not a digest'),
    ({"agent": {"kubeletDir": "var"}}, 'agent.kubeletDir: "var" is not an absolute path'),
    (
        {"agent": {"kubeletDir": "/var/"}},
        'agent.kubeletDir: "/var/" is not an absolute path without a slash at its end',
    ),
    ({"agent": {"nodeGroups": [{}]}}, "agent.nodeGroups[0].name: missing"),
    ({"agent": {"nodeGroups": [{"name": "a"}, {"name": "a"}]}}, "agent.nodeGroups: two groups have the name a"),
    ({"agent": {"nodeGroups": [{"name": "a", "period": 0}]}}, "agent.nodeGroups[0].period: 0 is not between 1 and 300"),
    ({"agent": {"exclude": {"a": []}}}, "agent.exclude: is for the modes rte and nfd"),
    (
        {"agent": {"mode": "rte", "exclude": {"a": []}, "nodeGroups": [{"name": "g", "mode": "own"}]}},
        "agent.nodeGroups[0].exclude: is for the modes rte and nfd",
    ),
    (
        {"operator": {"enabled": True}},
        "agent.enabled: the operator runs the agent; set it to false, or operator.enabled",
    ),
    (
        {**OPERATED, "operator": {"enabled": True, "values": {"fullnameOverride": "x"}}},
        "operator.values.fullnameOverride: is not for agents and scheduler of an operator",
    ),
    (
        {"global": {"imageRegistry": "https://mirror.example.com"}},
        'global.imageRegistry: "https://mirror.example.com" is not a registry; write a host like',
    ),
    ({"agent": {"image": {"registry": "a b"}}}, 'agent.image.registry: "a b" is not a registry'),
    ({"gc": {"image": {"repository": "Mine:1"}}}, 'gc.image.repository: "Mine:1" is not the name of an image'),
    ({"global": {"imageTag": "a:b"}}, 'global.imageTag: "a:b" is not a tag'),
    ({"commonLabels": {"a b": "c"}}, 'commonLabels: "a b" is not the key of a label'),
    ({"agent": {"podLabels": {"a": "b c"}}}, 'agent.podLabels[a]: "b c" is not the value of a label'),
    ({"networkPolicy": {"apiServerPorts": []}}, "networkPolicy.apiServerPorts: an empty list"),
    (
        {"scheduler": {"resources": {"requests": {"cpu": "lots"}}}},
        'scheduler.resources.requests[cpu]: "lots" is not a quantity',
    ),
    (
        {"agent": {"nodeGroups": [{"name": "a", "resources": {"limits": {"memory": [1]}}}]}},
        "agent.nodeGroups[0].resources.limits[memory]: a list is not a quantity",
    ),
    (
        {"agent": {"nodeGroups": [{"name": name, "nodeSelector": {"a": "b"}} for name in ("one", "two")]}},
        "agent.nodeGroups: one and two select the same nodes",
    ),
    (
        {"scheduler": {"leaderElection": {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}}},
        "scheduler.leaderElection.resourceName: kube-system/kube-scheduler is the lease of kube-scheduler",
    ),
    ("text", '"text" is not a mapping of names to values'),
    ({1: 2}, "1: no field of this name; known are nameOverride"),
]


@pytest.mark.parametrize("document, told", REFUSED, ids=[told for _, told in REFUSED])
def test_bad_values_are_refused_by_field(document: object, told: str) -> None:
    with pytest.raises(BadObject) as caught:
        values.read(document, "v.yaml")
    assert str(caught.value).startswith("Values v.yaml")
    assert told in str(caught.value)


def test_an_empty_file_means_the_defaults() -> None:
    assert values.read(None) == values.read({}) == model.Values()


def test_objects_are_merged_lists_are_replaced_and_null_removes() -> None:
    document = {
        "scheduler": {"resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": None}}, "tolerations": []},
        "agent": {"nodeSelector": {"kubernetes.io/os": None, "numa": "yes"}},
    }
    found = values.read(document)
    assert found.scheduler.resources == {"requests": {"memory": "256Mi"}, "limits": {"memory": "1Gi"}}
    assert found.scheduler.tolerations == []
    assert found.agent.node_selector == {"numa": "yes"}
    assert found.gc == model.Values().gc


@pytest.mark.parametrize(
    "registry", ["", "localhost", "mirror:5000", "registry.example.com/a/b_c", "[fd00::1]:5000/x", "10.0.0.1"]
)
def test_registries_and_paths_in_them(registry: str) -> None:
    assert values.read({"global": {"imageRegistry": registry}}).global_.image_registry == registry


def test_groups_that_differ_in_affinity_alone_may_have_nodes_of_their_own() -> None:
    groups = [{"name": "a", "affinity": {"nodeAffinity": {}}}, {"name": "b"}]
    assert len(values.read({"agent": {"nodeGroups": groups}}).agent.node_groups) == 2


def test_a_later_file_wins_and_its_null_still_removes() -> None:
    first: dict[str, Any] = {"agent": {"resources": {"limits": {"memory": "1Gi"}}, "period": 5}}
    second: dict[str, Any] = {"agent": {"resources": {"limits": None}}}
    found = values.read(values.over(first, second))
    assert "limits" not in found.agent.resources
    assert found.agent.period == 5


def test_a_node_group_has_the_settings_of_the_agent_but_for_its_own() -> None:
    group = {"name": "gpu", "nodeSelector": {"gpu": "yes"}, "period": 5, "tolerations": []}
    found = values.read({"agent": {"preset": "rke2", "nodeGroups": [group]}})
    (own,) = model.groups(found.agent)
    assert (own.period, own.preset, own.tolerations) == (5, "rke2", [])
    assert own.node_selector == {"kubernetes.io/os": "linux", "gpu": "yes"}


@settings(max_examples=30)
@given(documents())
def test_values_that_are_written_out_are_read_back(document: dict[str, Any]) -> None:
    read = values.read(document)
    assert values.read(values.plain(read)) == read


KEYS = st.sampled_from([*values.DEFAULTS, *values.DEFAULTS["scheduler"], *values.DEFAULTS["agent"]])
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(TREES | st.dictionaries(KEYS, st.dictionaries(KEYS, TREES, max_size=2), max_size=2))
def test_no_document_does_more_than_be_refused(document: object) -> None:
    with contextlib.suppress(BadObject):
        values.read(document)

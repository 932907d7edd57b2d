"""Random clusters of labelled nodes and pods with terms and constraints, as lists for the references and as a place."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from tests.unit.placement.rules import neighbours, worlds
from tests.unit.placement.rules.neighbours import HOST, ZONE, Place
from tests.unit.placement.rules.spreadreference import Site

NAMESPACES = {"default": {"team": "x"}, "other": {"team": "y"}}
"""Namespaces that are known; pods may be in a third one."""

keys = st.sampled_from([HOST, ZONE, "rack"])
pod_labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["web", "db"]), "v": st.sampled_from("12")})
expressions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(["app", "v"]),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(["web", "1"]), min_size=1, max_size=2),
    ),
    st.builds(lambda key: {"key": key, "operator": "Exists"}, st.sampled_from(["app", "v"])),
)
selectors = st.one_of(
    st.none(),
    st.builds(lambda labels: {"matchLabels": labels}, pod_labels),
    st.builds(
        lambda labels, some: {"matchLabels": labels, "matchExpressions": some},
        pod_labels,
        st.lists(expressions, max_size=2),
    ),
)
of_teams = st.sampled_from(
    [{}, {"matchLabels": {"team": "y"}}, {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}]
)
terms = st.fixed_dictionaries(
    {"topologyKey": keys, "labelSelector": selectors},
    optional={
        "namespaces": st.lists(st.sampled_from(["default", "other", "third"]), max_size=2),
        "namespaceSelector": of_teams,
    },
)
weighted = st.builds(lambda weight, term: {"weight": weight, "podAffinityTerm": term}, st.integers(1, 100), terms)
term_lists = st.fixed_dictionaries(
    {},
    optional={
        neighbours.REQUIRED: st.lists(terms, min_size=1, max_size=2),
        neighbours.PREFERRED: st.lists(weighted, min_size=1, max_size=2),
    },
)
affinities = st.fixed_dictionaries({}, optional={"podAffinity": term_lists, "podAntiAffinity": term_lists})
constraints = st.fixed_dictionaries(
    {
        "topologyKey": keys,
        "maxSkew": st.integers(1, 3),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": selectors,
    },
    optional={
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
    },
)


def _pod(labels: dict[str, str], namespace: str, leaving: bool, spec: dict[str, Any]) -> Pod:
    return neighbours.pod(labels, namespace=namespace, leaving=leaving, **spec)


def pods(**spec: st.SearchStrategy[Any]) -> st.SearchStrategy[Pod]:
    namespaces = st.sampled_from(["default", "default", "other", "third"])
    return st.builds(_pod, pod_labels, namespaces, st.booleans(), st.fixed_dictionaries({}, optional=spec))


def node_labels(number: int) -> st.SearchStrategy[dict[str, str]]:
    optional = {ZONE: st.sampled_from(["x", "y", ""]), "rack": st.sampled_from(["r", "s"]), "disk": st.just("ssd")}
    return st.fixed_dictionaries({}, optional={HOST: st.just(f"n{number}"), **optional})


def sites(there: st.SearchStrategy[Pod]) -> st.SearchStrategy[list[Site]]:
    crowd = st.lists(there, max_size=4)
    some = [st.builds(Site, node_labels(number), crowd) for number in range(5)]
    return st.integers(1, 5).flatmap(lambda count: st.tuples(*some[:count]).map(list))


TAINTED = "rack"
"""Nodes in a rack have a taint that keeps pods away."""


def place(made: list[Site]) -> Place:
    world = worlds.world([])
    found = Place(world)
    for name, labels in NAMESPACES.items():
        found.around.namespaces.put(name, labels)
    for row, site in enumerate(made):
        taints = [{"key": "kept", "effect": "NoSchedule"}] if TAINTED in site.labels else []
        world.put_node(row, worlds.node(f"n{row}", labels=dict(site.labels), taints=taints))
        for number, pod in enumerate(site.pods):
            world.put_pod(f"{row}/{number}", row, pod)
    return found


def staying(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=None))

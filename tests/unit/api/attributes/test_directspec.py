"""The annotations that choose zones and CPUs in direct mode, and what is said about wrong ones."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes import directspec
from numalign.api.attributes.directspec import NOTHING, DirectSpec
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Container, Pod
from tests.unit.kubelet import made

TOPOLOGY, CPUS = directspec.TOPOLOGY_SPEC, directspec.CPU_SPEC


def pod(annotations: dict[str, str], *containers: Container) -> Pod:
    init = [made.container("setup", cpu=1)]
    plain = made.pod("p", *(containers or (made.container("app"), made.container("proxy", cpu="500m"))), init=init)
    return structs.replace(plain, metadata=structs.replace(plain.metadata, annotations=annotations))


def read(topology: Any = None, cpus: Any = None, **more: Any) -> DirectSpec:
    said = {TOPOLOGY: topology, CPUS: cpus}
    return directspec.read(pod({name: json.dumps(value) for name, value in said.items() if value is not None}), **more)


def test_a_pod_without_the_annotations_asks_for_nothing() -> None:
    assert directspec.read(pod({})) == directspec.read(pod({"other": "{"})) == NOTHING
    assert not NOTHING.needs_direct


def test_every_field_is_read_and_containers_go_by_their_place() -> None:
    found = read(
        {
            "policy": "Restricted",
            "scope": "Container",
            "exclusive": "Required",
            "strategy": "DistributeEvenly",
            "memory": "Enforce",
            "containers": {"exclude": ["proxy"], "overrides": {"app": {"policy": "SingleNUMANode"}}},
        },
        {"preferred": "SpreadByPCPUs", "exclusive": "PCPULevel"},
    )
    assert found == DirectSpec(
        policy="restricted",
        scope="container",
        exclusive=True,
        strategy="DistributeEvenly",
        enforce_memory=True,
        excluded=frozenset({2}),
        policies=((1, "single-numa-node"),),
        preferred_cpus="SpreadByPCPUs",
        cpu_exclusion="PCPULevel",
    )
    assert found.needs_direct


def test_policy_and_scope_alone_do_not_need_direct_mode() -> None:
    assert not read({"policy": "SingleNUMANode", "scope": "Pod"}, {"preferred": "FullPCPUs"}).needs_direct


AT, OF_CPUS = f"metadata.annotations[{TOPOLOGY}]", f"metadata.annotations[{CPUS}]"
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "not JSON": (
        {TOPOLOGY: "{"},
        f"{AT}: not JSON that can be read: Input data was truncated; write an object like {{}}",
    ),
    "not an object": ({TOPOLOGY: "[]"}, f"{AT}: a list is not a mapping of names to values"),
    "a field that does not exist": (
        {TOPOLOGY: '{"polcy": "None"}'},
        f"{AT}.polcy: no field of this name; did you mean policy?",
    ),
    "an unknown policy": (
        {TOPOLOGY: '{"policy": "single-numa-node"}'},
        f'{AT}.policy: "single-numa-node" is not one of None, BestEffort, Restricted, SingleNUMANode',
    ),
    "an empty policy": (
        {TOPOLOGY: '{"policy": ""}'},
        f'{AT}.policy: "" is not one of None, BestEffort, Restricted, SingleNUMANode',
    ),
    "a policy that is no text": ({TOPOLOGY: '{"policy": 1}'}, f"{AT}.policy: 1 is not text; put it in quotes"),
    "an unknown scope": ({TOPOLOGY: '{"scope": "pod"}'}, f'{AT}.scope: "pod" is not one of Container, Pod'),
    "an unknown strategy": (
        {TOPOLOGY: '{"strategy": "Best"}'},
        f'{AT}.strategy: "Best" is not one of MostAllocated, LeastAllocated, DistributeEvenly',
    ),
    "an unknown memory rule": (
        {TOPOLOGY: '{"memory": "Strict"}'},
        f'{AT}.memory: "Strict" is not one of Enforce, Account',
    ),
    "an unknown container": (
        {TOPOLOGY: '{"containers": {"exclude": ["prxy"]}}'},
        f"{AT}.containers.exclude[0]: the pod has no container of this name; did you mean proxy?",
    ),
    "an override of an unknown container": (
        {TOPOLOGY: '{"containers": {"overrides": {"web": {"policy": "None"}}}}'},
        f"{AT}.containers.overrides[web]: the pod has no container of this name; known are setup, app, proxy",
    ),
    "all containers excluded": (
        {TOPOLOGY: '{"containers": {"exclude": ["setup", "app", "proxy"]}}'},
        f"{AT}.containers.exclude: every container is excluded; leave the annotation out, or name fewer containers",
    ),
    "an excluded container with a policy": (
        {TOPOLOGY: '{"containers": {"exclude": ["app"], "overrides": {"app": {"policy": "None"}}}}'},
        f"{AT}.containers.overrides[app]: the container is excluded, too; remove one of both",
    ),
    "overrides under scope Pod": (
        {TOPOLOGY: '{"scope": "Pod", "containers": {"overrides": {"app": {"policy": "None"}}}}'},
        f"{AT}.containers.overrides[app]: with scope Pod all containers have one policy; "
        "use scope Container, or remove overrides",
    ),
    "a fraction of a CPU where whole ones are required": (
        {CPUS: '{"required": "FullPCPUs"}'},
        "spec.containers[1].resources.requests[cpu]: 500m is not a whole number of CPUs with an equal limit or none, "
        "as the required CPU policy FullPCPUs needs; change it, or exclude container proxy",
    ),
    "an unknown CPU policy": (
        {CPUS: '{"preferred": "Full"}'},
        f'{OF_CPUS}.preferred: "Full" is not one of FullPCPUs, SpreadByPCPUs',
    ),
    "an unknown exclusion": (
        {CPUS: '{"exclusive": "Core"}'},
        f'{OF_CPUS}.exclusive: "Core" is not one of None, PCPULevel, NUMANodeLevel',
    ),
    "too long": ({TOPOLOGY: "[" * 20_000}, f"{AT}: 20000 characters; at most 16384 are read"),
}


@pytest.mark.parametrize("annotations, message", WRONG.values(), ids=WRONG)
def test_a_wrong_annotation_is_refused_with_the_fields_name(annotations: dict[str, str], message: str) -> None:
    with pytest.raises(BadObject) as raised:
        directspec.read(pod(annotations))
    assert str(raised.value) == f"Pod default/p, {message}"


@pytest.mark.parametrize("text", ["[" * 16_000, '{"policy":' * 1600, '{"containers":' + "[" * 5000 + "]" * 5000 + "}"])
def test_deep_nesting_is_refused_and_nothing_else_happens(text: str) -> None:
    with pytest.raises(BadObject):
        directspec.read(pod({TOPOLOGY: text}))


EVERY = (*directspec.SPECS, directspec.KOORDINATOR_TOPOLOGY_SPEC, directspec.KOORDINATOR_RESOURCE_SPEC)


@given(st.text(max_size=200), st.sampled_from(EVERY))
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    with suppress(BadObject):
        directspec.read(pod({name: text}), koordinator=True)


FIELDS = st.sampled_from(["policy", "scope", "containers", "exclude", "overrides", "required"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["FullPCPUs", "Restricted"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(EVERY))
def test_any_json_is_read_or_refused(value: Any, name: str) -> None:
    with suppress(BadObject):
        directspec.read(pod({name: json.dumps(value)}), koordinator=True)


KOORDINATOR = {
    directspec.KOORDINATOR_TOPOLOGY_SPEC: '{"numaTopologyPolicy": "SingleNUMANode"}',
    directspec.KOORDINATOR_RESOURCE_SPEC: '{"requiredCPUBindPolicy": "Default", "preferredCPUBindPolicy": "FullPCPUs"}',
}


def test_koordinators_annotations_are_read_where_the_switch_is_on() -> None:
    assert directspec.read(pod(KOORDINATOR)) == NOTHING
    found = directspec.read(pod(KOORDINATOR), koordinator=True)
    # In Koordinator a pod with a policy has its zones to itself unless it says otherwise.
    assert found == DirectSpec(policy="single-numa-node", exclusive=True, preferred_cpus="FullPCPUs")


def test_our_annotation_wins_over_koordinators() -> None:
    found = directspec.read(pod({**KOORDINATOR, TOPOLOGY: '{"policy": "BestEffort"}'}), koordinator=True)
    assert (found.policy, found.exclusive) == ("best-effort", None)


def test_an_unknown_word_of_koordinator_is_refused_too() -> None:
    with pytest.raises(BadObject, match="numaTopologyPolicy"):
        directspec.read(
            pod({directspec.KOORDINATOR_TOPOLOGY_SPEC: '{"numaTopologyPolicy": "Single"}'}), koordinator=True
        )


def test_a_container_owns_cpus_if_it_requests_whole_ones_and_may_not_use_more() -> None:
    assert directspec.owns_cpus(made.container(cpu=2))
    assert directspec.owns_cpus(made.container(cpu=2, burstable=True))
    assert not directspec.owns_cpus(made.container(cpu="1500m"))
    assert not directspec.owns_cpus(made.container(cpu=None))

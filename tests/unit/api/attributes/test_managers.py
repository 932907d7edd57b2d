"""How the kubelet is set up, in attributes: every policy, option, gate and reservation comes back."""

import pytest
from hypothesis import given

from numalign.api.attributes import managers
from numalign.api.attributes.grammar import AttributeTextError
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies
from tests import topology_strategies as some

STATIC = ManagerPolicies(
    cpu="static",
    memory="Static",
    cpu_options={"full-pcpus-only": "true", "align-by-socket": "false"},
    topology_options={"prefer-closest-numa-nodes": "true"},
)
REFUSED_POLICIES = {
    "nothing": "",
    "no cpu policy": "memory=Static",
    "no memory policy": "cpu=static",
    "setting of another version": "cpu=static;memory=Static;swap=none",
    "setting twice": "cpu=static;cpu=none;memory=None",
    "no value at all": "cpu=static;memory=Static;cpu.full-pcpus-only",
    "option without a name": "cpu=static;memory=Static;cpu.=true",
}
REFUSED_BUILDS = {"nothing": "", "gate without a value": "v1.34.0;X", "gate half open": "v1.34.0;X=maybe"}
REFUSED_RESERVATIONS = {"zone is no number": "a:memory=1", "no amounts": "0", "zone twice": "0:memory=1;0:memory=2"}


def test_policies_read_like_a_configuration() -> None:
    assert managers.encode_policies(STATIC) == (
        "cpu=static;memory=Static;cpu.align-by-socket=false;cpu.full-pcpus-only=true;topology.prefer-closest-numa-nodes=true"
    )


@given(some.POLICIES_OF_MANAGERS)
def test_policies_are_read_back(policies: ManagerPolicies) -> None:
    assert managers.decode_policies(managers.encode_policies(policies)) == policies


@given(some.BUILDS)
def test_the_kubelet_is_read_back(build: KubeletBuild) -> None:
    assert managers.decode_build(managers.encode_build(build)) == build


def test_gates_follow_the_version() -> None:
    build = KubeletBuild(version="v1.36.2+k3s1", feature_gates={"PodLevelResources": True, "A": False})
    assert managers.encode_build(build) == "v1.36.2%2Bk3s1;A=false;PodLevelResources=true"


@given(some.RESERVED_MEMORY)
def test_reserved_memory_is_read_back(reserved: managers.ReservedMemory) -> None:
    assert managers.decode_reserved_memory(managers.encode_reserved_memory(reserved)) == reserved


@pytest.mark.parametrize("body", REFUSED_POLICIES.values(), ids=REFUSED_POLICIES)
def test_settings_that_make_no_sense_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        managers.decode_policies(body)


@pytest.mark.parametrize("body", REFUSED_BUILDS.values(), ids=REFUSED_BUILDS)
def test_gates_that_make_no_sense_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        managers.decode_build(body)


@pytest.mark.parametrize("body", REFUSED_RESERVATIONS.values(), ids=REFUSED_RESERVATIONS)
def test_reservations_that_make_no_sense_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        managers.decode_reserved_memory(body)

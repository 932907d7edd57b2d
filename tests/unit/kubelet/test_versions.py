import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kubelet import versions
from numalign.kubelet.versions import Behaviour, Gate, Minor

MINORS = [Minor(1, number) for number in range(versions.OLDEST.minor, versions.NEWEST.minor + 1)]

any_minor = st.builds(Minor, st.integers(0, 2), st.integers(0, 99))

# One word per minor, 1.34 to 1.38, as the feature list of each release has it.
GATE_STATES = {
    "CPUManagerPolicyAlphaOptions": "off off off off off",
    "CPUManagerPolicyBetaOptions": "on on on on on",
    "InPlacePodLevelResourcesVerticalScaling": "absent off on on on",
    "InPlacePodVerticalScaling": "on locked-on locked-on locked-on locked-on",
    "InPlacePodVerticalScalingExclusiveCPUs": "off off off off off",
    "InPlacePodVerticalScalingExclusiveMemory": "off off off off off",
    "InPlacePodVerticalScalingInitContainers": "absent absent on locked-on locked-on",
    "KubeletPodResourcesDynamicResources": "on on locked-on locked-on locked-on",
    "KubeletPodResourcesGet": "on on locked-on locked-on locked-on",
    "KubeletPodResourcesListUseActivePods": "on on on on on",
    "NodeDeclaredFeatures": "absent off on locked-on locked-on",
    "PodLevelResourceManagers": "absent absent off off off",
    "PodLevelResources": "on on on on on",
    "PodLevelResourcesFixDefaulting": "absent absent absent on on",
    "PodLevelResourcesFixKubeletQOSClass": "absent absent absent on on",
    "TopologyManagerPolicyAlphaOptions": "off off off off off",
    "TopologyManagerPolicyBetaOptions": "on on on on on",
    "TopologyManagerPolicyOptions": "on on locked-on locked-on locked-on",
}

OPTION_STAGES = {
    "full-pcpus-only": "ga ga ga ga ga",
    "strict-cpu-reservation": "beta ga ga ga ga",
    "prefer-align-cpus-by-uncorecache": "beta beta ga ga ga",
    "distribute-cpus-across-numa": "beta beta beta beta beta",
    "align-by-socket": "alpha alpha alpha alpha alpha",
    "distribute-cpus-across-cores": "alpha alpha alpha alpha alpha",
    "prefer-closest-numa-nodes": "ga ga ga ga ga",
    "max-allowable-numa-nodes": "beta ga ga ga ga",
}

# y: this minor follows the rule of that name.
BEHAVIOURS = {
    "amounts_from_allocated_status": "y....",
    "pod_level_pods_need_gate": "..yyy",
    "device_hints_over_device_zones": "..yyy",
    "assigned_cpus_skip_smt_check": "...yy",
    "distribution_knows_sockets": "...yy",
    "distribution_keeps_affinity": "....y",
    "memory_skips_empty_requests": "...yy",
    "pod_resources_by_isolation": "...yy",
}

GATE_ERRORS = {
    "a gate of a later minor": (
        {"PodLevelResourceManagers": True},
        Minor(1, 35),
        ["unrecognized feature gate: PodLevelResourceManagers"],
    ),
    "a locked gate turned off": (
        {"InPlacePodVerticalScaling": False},
        Minor(1, 35),
        ["cannot set feature gate InPlacePodVerticalScaling to false, feature is locked to true"],
    ),
    "a locked gate left as it is": ({"InPlacePodVerticalScaling": True}, Minor(1, 38), []),
    "the same gate before it was locked": ({"InPlacePodVerticalScaling": False}, Minor(1, 34), []),
    "no dependencies in 1.34": ({"PodLevelResources": False}, Minor(1, 34), []),
    "nothing that is on by default needs it in 1.35": ({"PodLevelResources": False}, Minor(1, 35), []),
    "a default that needs what was turned off": (
        {"PodLevelResources": False},
        Minor(1, 36),
        [
            "InPlacePodLevelResourcesVerticalScaling is enabled, "
            "but depends on features that are disabled: [PodLevelResources]"
        ],
    ),
    "turned off together": (
        {"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False},
        Minor(1, 36),
        [],
    ),
    "an alpha gate without its alpha need": (
        {"InPlacePodLevelResourcesVerticalScaling": True},
        Minor(1, 35),
        [
            "InPlacePodLevelResourcesVerticalScaling is enabled, "
            "but depends on features that are disabled: [NodeDeclaredFeatures]"
        ],
    ),
    "a gate of somebody else": ({"GracefulNodeShutdown": False}, Minor(1, 38), []),
}


def spoken(row: Gate | None) -> str:
    if row is None:
        return "absent"
    return ("locked-" if row.locked else "") + ("on" if row.default else "off")


@pytest.mark.parametrize("name", versions.GATES)
def test_a_gate_stands_in_every_minor_as_its_release_has_it(name: str) -> None:
    assert [spoken(versions.gate(name, minor)) for minor in MINORS] == GATE_STATES[name].split()


@pytest.mark.parametrize("name", versions.GATES)
def test_a_gate_is_on_by_default_where_it_exists_and_defaults_to_on(name: str) -> None:
    expected = [state.endswith("on") for state in GATE_STATES[name].split()]
    assert [versions.gate_default(name, minor) for minor in MINORS] == expected


@pytest.mark.parametrize("name", versions.GATES)
def test_a_locked_gate_stays_locked_in_later_minors(name: str) -> None:
    rows = versions.GATES[name]
    assert [row.since for row in rows] == sorted({row.since for row in rows})
    assert [row.locked for row in rows] == sorted(row.locked for row in rows)


def test_a_misspelt_gate_is_an_error_and_not_a_feature_that_is_off() -> None:
    with pytest.raises(KeyError):
        versions.gate_default("PodLevelResource", versions.NEWEST)


@pytest.mark.parametrize("chosen, minor, errors", GATE_ERRORS.values(), ids=GATE_ERRORS)
def test_gates_a_kubelet_does_not_start_with(chosen: dict[str, bool], minor: Minor, errors: list[str]) -> None:
    assert list(versions.gate_errors(chosen, minor)) == errors


@given(st.dictionaries(st.sampled_from(sorted(versions.GATES)), st.booleans()), any_minor)
def test_writing_the_defaults_down_is_never_refused(chosen: dict[str, bool], minor: Minor) -> None:
    known = {name for name in chosen if versions.gate(name, minor) is not None}
    assert not versions.gate_errors({name: versions.gate_default(name, minor) for name in known}, minor)


@pytest.mark.parametrize("option", OPTION_STAGES)
def test_an_option_matures_as_its_releases_have_it(option: str) -> None:
    assert [versions.option_stage(option, minor) for minor in MINORS] == OPTION_STAGES[option].split()


def test_an_unknown_option_has_no_stage() -> None:
    assert versions.option_stage("prefer-closest-numa", versions.NEWEST) is None


@pytest.mark.parametrize("rule", Behaviour.__struct_fields__)
def test_a_rule_holds_in_the_minors_that_follow_it(rule: str) -> None:
    held = [getattr(versions.behaviour(minor), rule) for minor in MINORS]
    assert held == [mark == "y" for mark in BEHAVIOURS[rule]]


@given(any_minor)
def test_an_unknown_minor_is_answered_as_the_nearest_known_one(minor: Minor) -> None:
    nearest = versions.clamped(minor)
    assert nearest in MINORS
    assert (nearest == minor) == (minor in MINORS)
    assert versions.behaviour(minor) == versions.behaviour(nearest)


@pytest.mark.parametrize(
    "minor, nearest", [(Minor(1, 20), versions.OLDEST), (Minor(1, 39), versions.NEWEST), (Minor(2, 0), versions.NEWEST)]
)
def test_the_nearest_minor_lies_on_the_side_of_the_unknown_one(minor: Minor, nearest: Minor) -> None:
    assert versions.clamped(minor) == nearest


def test_a_minor_reads_as_people_write_it() -> None:
    assert str(Minor(1, 38)) == "1.38"


VERSIONS = {
    "release": ("v1.37.1", (1, 37)),
    "vendor build": ("v1.34.4-eks-abc123", (1, 34)),
    "plus": ("1.36+", (1, 36)),
    "pre-release": ("v1.38.0-alpha.1.23+0a1b2c", (1, 38)),
    "no patch": ("v1.9", (1, 9)),
    "nothing": ("", None),
    "word": ("unknown", None),
    "major only": ("v1", None),
    "no dot between": ("v137", None),
    "absurd": ("v1." + "9" * 5000, None),
    "digits of another script": ("v1.٣", None),
}


@pytest.mark.parametrize("text, version", VERSIONS.values(), ids=VERSIONS)
def test_a_minor_is_read_from_whatever_a_kubelet_calls_itself(text: str, version: tuple[int, int] | None) -> None:
    assert versions.parse(text) == (Minor(*version) if version else None)

"""How a node advertises direct mode and acknowledges decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.attributes import directmode
from numalign.api.attributes.directmode import AppliedContainer, DeviceMinors, DirectMode, NodeDefaults
from numalign.api.attributes.grammar import AttributeTextError

NAMES = st.text(min_size=1, max_size=8)
MASKS = st.integers(0, (1 << 70) - 1)


@given(st.frozensets(st.sampled_from(directmode.FEATURES)))
def test_a_mode_comes_back_as_it_was(features: frozenset[str]) -> None:
    assert directmode.decode_mode(directmode.encode_mode(DirectMode(features))) == DirectMode(features)


@given(st.dictionaries(st.tuples(NAMES, MASKS), MASKS.filter(bool)))
def test_minors_come_back_as_they_were(minors: dict[tuple[str, int], int]) -> None:
    devices = tuple(sorted(DeviceMinors(name, zones, own) for (name, zones), own in minors.items()))
    assert directmode.decode_minors(directmode.encode_minors(devices)) == devices


@given(st.dictionaries(st.tuples(NAMES, NAMES), st.one_of(NAMES, st.tuples(MASKS, MASKS))))
def test_acknowledgements_come_back_as_they_were(outcomes: dict[tuple[str, str], str | tuple[int, int]]) -> None:
    applied = tuple(
        sorted(
            AppliedContainer(uid=uid, container=name, failure=outcome)
            if isinstance(outcome, str)
            else AppliedContainer(uid=uid, container=name, cpus=outcome[0], mems=outcome[1])
            for (uid, name), outcome in outcomes.items()
        )
    )
    assert directmode.decode_applied(directmode.encode_applied(applied)) == applied


@pytest.mark.parametrize("body", ["", "predict;", "direct", "direct;gpus", "direct;cpus,mems"])
def test_an_unknown_mode_is_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        directmode.decode_mode(body)


@pytest.mark.parametrize("body", ["gpu", "gpu=0", "gpu=x:0", "gpu=0:0;gpu=0:1"])
def test_broken_minors_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        directmode.decode_minors(body)


@pytest.mark.parametrize("body", ["uid", "uid=0@0", "uid|app=0", "uid|app=x@0", "uid|app=0@0;uid|app=1@0"])
def test_broken_acknowledgements_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        directmode.decode_applied(body)


def test_labels_are_defaults_and_unknown_words_say_nothing() -> None:
    assert directmode.defaults({}) == NodeDefaults()
    labels = dict(zip(directmode.LABELS, ["Restricted", "Pod", "SpreadByPCPUs", "LeastAllocated"], strict=True))
    assert directmode.defaults(labels) == NodeDefaults("restricted", "pod", "SpreadByPCPUs", "LeastAllocated")
    assert directmode.defaults(dict.fromkeys(directmode.LABELS, "what")) == NodeDefaults()

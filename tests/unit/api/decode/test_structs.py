"""Objects go out as the API server writes them, and come back equal."""

import pytest
from hypothesis import given

from numalign.api.decode import decode, quantity, structs
from numalign.api.objects import pod
from tests.strategies import api


@given(api.pods())
def test_written_and_read_again_it_is_the_same_pod(original: pod.Pod) -> None:
    assert decode.decode(pod.Pod, structs.encode(original)) == original


def test_defaults_are_left_out_and_amounts_are_canonical_text() -> None:
    spec = pod.PodSpec(overhead={"memory": quantity.parse("1.5Gi")}, node_name="worker-7")
    assert structs.encode(pod.Pod(spec=spec)) == b'{"spec":{"overhead":{"memory":"1536Mi"},"nodeName":"worker-7"}}'


def test_structs_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        pod.Pod().spec.node_name = "worker-7"  # type: ignore[misc]


def test_types_without_a_hook_are_our_mistake_and_say_so() -> None:
    with pytest.raises(NotImplementedError, match="no reader for complex"):
        structs.decoded(complex, "1")
    with pytest.raises(NotImplementedError, match="no writer for complex"):
        structs.encodable(1j)

"""The QoS class follows from requests and limits as in kubelet spec 1.1."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import decode
from numalign.api.objects import pod, qos
from numalign.api.objects.qos import QoS
from tests.strategies import api

BOTH = {"cpu": "2", "memory": "1Gi"}
EQUAL = {"requests": BOTH, "limits": BOTH}

CONTAINERS: dict[str, tuple[dict[str, Any], QoS]] = {
    "nothing": ({}, QoS.BEST_EFFORT),
    "equal cpu and memory": (EQUAL, QoS.GUARANTEED),
    "equal amounts in different notation": (
        {"requests": BOTH, "limits": {"cpu": "2000m", "memory": "1024Mi"}},
        QoS.GUARANTEED,
    ),
    "fractional cpu": ({"requests": {**BOTH, "cpu": "1500m"}, "limits": {**BOTH, "cpu": "1500m"}}, QoS.GUARANTEED),
    "request below limit": ({"requests": BOTH, "limits": {**BOTH, "cpu": "3"}}, QoS.BURSTABLE),
    "requests only": ({"requests": BOTH}, QoS.BURSTABLE),
    "limits only, not defaulted": ({"limits": BOTH}, QoS.BURSTABLE),
    "cpu only": ({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, QoS.BURSTABLE),
    "zeros": ({"requests": {"cpu": "0"}, "limits": {"memory": "0"}}, QoS.BEST_EFFORT),
    "device only": ({"requests": {"example.com/nic": "1"}, "limits": {"example.com/nic": "1"}}, QoS.BEST_EFFORT),
    "hugepages do not count": ({"requests": {"hugepages-2Mi": "4Mi"}}, QoS.BEST_EFFORT),
    "device beside equal cpu and memory": (
        {"requests": {**BOTH, "example.com/nic": "1"}, "limits": BOTH},
        QoS.GUARANTEED,
    ),
}


def read(*containers: dict[str, Any], **spec: Any) -> pod.Pod:
    return decode.decode(pod.Pod, {"spec": {"containers": [{"resources": one} for one in containers], **spec}})


@pytest.mark.parametrize("resources, expected", CONTAINERS.values(), ids=CONTAINERS)
def test_of_one_container(resources: dict[str, Any], expected: QoS) -> None:
    assert qos.of(read(resources)) is expected


INIT = {"initContainers": [{"resources": {"requests": {"cpu": "1"}}}]}

PODS: dict[str, tuple[pod.Pod, QoS]] = {
    "no containers": (read(), QoS.BEST_EFFORT),
    "all guaranteed": (read(EQUAL, EQUAL), QoS.GUARANTEED),
    "guaranteed and best effort": (read(EQUAL, {}), QoS.BURSTABLE),
    "all best effort": (read({}, {}), QoS.BEST_EFFORT),
    "an init container counts": (read(EQUAL, **INIT), QoS.BURSTABLE),
    "pod level decides alone": (read({}, {}, resources=EQUAL), QoS.GUARANTEED),
    "pod level burstable": (read(EQUAL, resources={"limits": {"cpu": "4"}}), QoS.BURSTABLE),
    "pod level hugepages decide too": (read(EQUAL, resources={"limits": {"hugepages-2Mi": "2Mi"}}), QoS.BEST_EFFORT),
    "pod level without such a name does not count": (
        read(EQUAL, resources={"limits": {"example.com/nic": "1"}}),
        QoS.GUARANTEED,
    ),
}


@pytest.mark.parametrize("some, expected", PODS.values(), ids=PODS)
def test_of_a_pod(some: pod.Pod, expected: QoS) -> None:
    assert qos.of(some) is expected


@pytest.mark.parametrize("written", QoS)
def test_the_status_wins(written: QoS) -> None:
    some = decode.decode(
        pod.Pod, {"spec": {"containers": [{"resources": EQUAL}]}, "status": {"qosClass": written.value}}
    )
    assert qos.of(some) is written
    assert qos.computed(some) is QoS.GUARANTEED


def test_an_unknown_class_in_the_status_is_ignored() -> None:
    assert qos.of(pod.Pod(status=pod.PodStatus(qos_class="Platinum"))) is QoS.BEST_EFFORT


@given(api.pods(), st.data())
def test_the_order_of_containers_does_not_matter(some: pod.Pod, data: st.DataObject) -> None:
    shuffled = tuple(data.draw(st.permutations(some.spec.containers)))
    again = pod.Pod(spec=pod.PodSpec(containers=shuffled, init_containers=some.spec.init_containers))
    assert qos.of(again) is qos.of(pod.Pod(spec=pod.PodSpec(containers=some.in_admission_order())))

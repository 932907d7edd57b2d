"""The QoS class of Kubernetes 1.34: where it is another one than today's, and that it is the same everywhere else."""

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects import qos
from numalign.api.objects.pod import Pod
from numalign.oracle.plugin import history
from numalign.oracle.plugin.generate import histories
from tests.oracle.handmade import ONE, UNEQUAL, container, pod

LIMITS_ONLY = {"limits": ONE}
REQUESTS_ONLY = {"requests": ONE}


def class_of(raw: dict[str, Any]) -> str:
    return qos.of(history.stamped(decode.decode(Pod, raw), raw))


@pytest.mark.parametrize(
    "raw, old, new",
    [
        (pod(container(ONE), resources={}), "BestEffort", "Guaranteed"),
        (pod(*UNEQUAL), "Guaranteed", "Burstable"),
        (pod(container(ONE), resources=REQUESTS_ONLY), "Burstable", "Burstable"),
        (pod(container(ONE), resources=LIMITS_ONLY), "Burstable", "Burstable"),
        (pod(container({}), resources={**LIMITS_ONLY, **REQUESTS_ONLY}), "Guaranteed", "Guaranteed"),
        (pod(container({"vendor.com/nic": "1"})), "BestEffort", "BestEffort"),
        (pod(container(ONE), container({})), "Burstable", "Burstable"),
        ({**pod(container(ONE), resources={}), "status": {"qosClass": "Burstable"}}, "Burstable", "Burstable"),
    ],
    ids=["empty", "sums", "requests", "limits", "pod-level", "device", "one without", "written"],
)
def test_the_class_is_the_one_of_1_34(raw: dict[str, Any], old: str, new: str) -> None:
    assert (class_of(raw), qos.of(decode.decode(Pod, raw))) == (old, new)


def test_pods_that_an_api_server_takes_have_the_same_class() -> None:
    steps = (step for number in range(100) for step in histories.draw(5, number)[1]["steps"])
    pods = [step["pod"] for step in steps if "pod" in step]
    assert [raw for raw in pods if class_of(raw) != qos.of(decode.decode(Pod, raw))] == []

"""A foreign pod is bound by an unknown scheduler and, if so configured, holds exclusive resources."""

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches import foreignpods
from numalign.placement.referenceargs import ForeignPodsDetect
from tests.unit.placement.reference.caches import made

EVERY, EXCLUSIVE, NONE = ForeignPodsDetect.ALL, ForeignPodsDetect.ONLY_EXCLUSIVE, ForeignPodsDetect.NONE
THEIRS = made.pod(scheduler="another")
NIC_POD = made.pod(scheduler="another", requests={made.NIC: "1"}, guaranteed=False)
BURSTABLE = made.pod(scheduler="another", guaranteed=False)

CASES = {
    "ours": (made.pod(), EVERY, False),
    "ours, by another profile": (made.pod(scheduler="second-profile"), EVERY, False),
    "not bound": (made.pod(node="", scheduler="another"), EVERY, False),
    "theirs": (THEIRS, EVERY, True),
    "theirs, with nothing exclusive": (BURSTABLE, EVERY, True),
    "nothing exclusive": (BURSTABLE, EXCLUSIVE, False),
    "whole cpus": (THEIRS, EXCLUSIVE, True),
    "a device that the node lists": (NIC_POD, EXCLUSIVE, True),
    "ours, exclusive": (made.pod(), EXCLUSIVE, False),
    "nobody asked": (THEIRS, NONE, False),
}


@pytest.mark.parametrize("pod, detect, foreign", CASES.values(), ids=CASES)
def test_who_is_foreign(pod: Pod, detect: ForeignPodsDetect, foreign: bool) -> None:
    assert foreignpods.is_foreign(pod, {made.NIC}, {made.OURS, "second-profile"}, detect) == foreign


def test_a_device_that_the_node_does_not_list_is_not_exclusive() -> None:
    assert not foreignpods.is_foreign(NIC_POD, (), (), EXCLUSIVE)

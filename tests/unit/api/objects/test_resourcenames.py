"""A resource's name determines its class, by the rules of the API server."""

import pytest

from numalign.api.objects import resourcenames

LONGEST_DOMAIN = "a" * (resourcenames.MAX_DOMAIN - len("requests."))

# Name, native, extended, hugepages, may be stated for the pod as a whole.
NAMES = [
    ("cpu", True, False, False, True),
    ("memory", True, False, False, True),
    ("ephemeral-storage", True, False, False, False),
    ("gpu", True, False, False, False),
    ("hugepages-2Mi", True, False, True, True),
    ("hugepages-", True, False, True, True),
    ("kubernetes.io/batch", True, False, False, False),
    ("node.kubernetes.io/x", True, False, False, False),
    ("example.com/nic", False, True, False, False),
    ("example.com/Nic_2.x", False, True, False, False),
    ("requests.example.com/nic", False, False, False, False),
    ("example.com/", False, False, False, False),
    ("/nic", False, False, False, False),
    ("example.com/a/b", False, False, False, False),
    ("Example.com/nic", False, False, False, False),
    ("example.com/nic\n", False, False, False, False),
    ("example.com/" + "n" * 63, False, True, False, False),
    ("example.com/" + "n" * 64, False, False, False, False),
    (LONGEST_DOMAIN + "/nic", False, True, False, False),
    (LONGEST_DOMAIN + "a/nic", False, False, False, False),
]


@pytest.mark.parametrize("name, native, extended, hugepages, pod_level", NAMES)
def test_the_name_defines_the_class(name: str, native: bool, extended: bool, hugepages: bool, pod_level: bool) -> None:
    assert resourcenames.is_native(name) is native
    assert resourcenames.is_extended(name) is extended
    assert resourcenames.is_hugepages(name) is hugepages
    assert resourcenames.is_pod_level(name) is pod_level

"""Amounts as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.explain import amounts

GIB = 1 << 30
CASES = [
    ("cpu", 8000, "8 CPUs"),
    ("cpu", 1000, "1 CPU"),
    ("cpu", 1500, "1.5 CPUs"),
    ("cpu", 50, "0.05 CPUs"),
    ("memory", 6 * GIB, "6Gi memory"),
    ("memory", 3 * GIB // 2, "1.5Gi memory"),
    ("memory", 0, "0 memory"),
    ("memory", 1023, "1023 memory"),
    ("hugepages-2Mi", 4 << 20, "4Mi hugepages-2Mi"),
    ("ephemeral-storage", 10 << 40, "10Ti ephemeral-storage"),
    ("example.com/gpu", 8, "8 example.com/gpu"),
    ("example.com/gpu", 1024, "1024 example.com/gpu"),
]


@pytest.mark.parametrize("resource, amount, text", CASES, ids=[text for *_, text in CASES])
def test_amounts_are_said_in_their_own_unit(resource: str, amount: int, text: str) -> None:
    assert amounts.named(resource, amount) == text


def test_the_number_can_be_had_alone() -> None:
    assert [amounts.bare(resource, amount) for resource, amount, _ in CASES[:5]] == ["8", "1", "1.5", "0.05", "6Gi"]


@given(st.sampled_from(["cpu", "memory", "example.com/nic"]), st.integers(0, 1 << 62), st.integers(1, 1 << 40))
def test_a_need_never_reads_like_the_less_that_there_is(resource: str, free: int, short: int) -> None:
    assert amounts.bare(resource, free + short, up=True) != amounts.bare(resource, free)

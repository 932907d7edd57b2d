"""Parts of machines, by the names that kubelets give them."""

from __future__ import annotations

import pytest

from numalign.kubelet.machine.machine import HugePages


@pytest.mark.parametrize(
    "size_kib, name", [(64, "64Ki"), (2048, "2Mi"), (16 << 20, "16Gi"), (512 << 20, "512Gi"), (1 << 30, "1Ti")]
)
def test_pages_are_called_by_the_largest_unit_that_their_size_is_whole_in(size_kib: int, name: str) -> None:
    assert HugePages(size_kib, 0).resource == f"hugepages-{name}"

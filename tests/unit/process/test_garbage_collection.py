"""What has settled is left alone, and later cycles are collected all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from numalign.process import tasks


class Knot:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_what_is_there_is_not_looked_at_again() -> None:
    kept, before = [Knot()], gc.get_freeze_count()
    tasks.settle()
    assert gc.get_freeze_count() > before
    assert not any(each is kept for each in gc.get_objects())


def test_cycles_made_later_are_collected() -> None:
    tasks.settle()
    gone = weakref.ref(Knot())
    gc.collect()
    assert gone() is None


def test_a_burst_of_what_stays_is_hardly_looked_at() -> None:
    looks: list[str] = []
    tasks.settle()
    gc.callbacks.append(lambda phase, _: looks.append(phase))
    try:
        kept = [[number] for number in range(tasks.YOUNG // 2)]
    finally:
        gc.callbacks.pop()
    assert len(kept) == tasks.YOUNG // 2
    assert not looks

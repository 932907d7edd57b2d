"""No wrong expectation passes: whatever is changed in a recorded case, replaying it notices.

The cases named below hold, family by family, every kind of expectation that the recordings contain; the slow tier takes
a random handful of each family on top."""

from __future__ import annotations

import random
from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.oracle.harness import divergence
from numalign.oracle.harness.files import RecordedValue
from numalign.oracle.kubelet import replay
from tests.oracle import mutations, recordings

TELLING = {
    "tm_merge": ["merge-03210", "merge-01846"],
    "cpu_static": ["cpu-02044", "cpu-00480", "cpu-00737", "cpu-00350"],
    "cpu_distribute": ["cpud-00297", "cpud-00194", "cpud-00204"],
    "cpu_livelock": ["cpu-livelock-0"],
    "mem_static": ["mem-00814"],
    "device_hints": ["dev-00051", "dev-00093", "dev-00440", "dev-00079"],
    "sequence": ["seq-00226"],
    "sequence_podlevel": ["seqpl-00077"],
}
MORE_LIVES = {
    "sequence": ["seq-00624", "seq-00337", "seq-00739", "seq-00754"],
    "sequence_podlevel": ["seqpl-00111", "seqpl-00064", "seqpl-00247"],
}
SAMPLE, SEED = 20, 1


def cases(chosen: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(family, name) for family, names in chosen.items() for name in names]


def sampled(family: str) -> list[str]:
    """Of the shorter half: a long case repeats itself, and every repetition is changed too."""
    by_length = sorted(recordings.cases(family).items(), key=lambda item: len(str(item[1])))
    shorter = [name for name, _ in by_length[: len(by_length) // 2 + 1]]
    return random.Random(SEED).sample(shorter, min(SAMPLE, len(shorter)))


def is_noticed(case: Any) -> bool:
    """As a mismatch, or as a file that cannot be used where the model would not know what it is asked."""
    try:
        vector = recordings.vector(RecordedValue("mutated", case, divergence.canonical(case)))
    except BadObject:
        return True
    return bool(replay.judge(vector).differences)


def unnoticed(family: str, name: str) -> list[tuple[str, str]]:
    tried = list(mutations.Mutator(family).of(recordings.cases(family)[name]))
    assert len(tried) >= 10
    return [(wrong.place, wrong.what) for wrong in tried if not is_noticed(wrong.case)]


@pytest.mark.parametrize("family, name", cases(TELLING))
def test_every_changed_expectation_is_noticed(family: str, name: str) -> None:
    assert unnoticed(family, name) == []


@pytest.mark.slow
@pytest.mark.parametrize("family, name", cases(MORE_LIVES))
def test_every_changed_expectation_is_noticed_in_longer_lives(family: str, name: str) -> None:
    assert unnoticed(family, name) == []


@pytest.mark.slow
@pytest.mark.parametrize("family", recordings.COUNTS)
def test_every_changed_expectation_is_noticed_in_a_random_handful(family: str) -> None:
    assert {name: missed for name in sampled(family) if (missed := unnoticed(family, name))} == {}


@pytest.mark.parametrize("family", recordings.COUNTS)
def test_a_case_as_it_was_recorded_is_not_noticed(family: str) -> None:
    name = TELLING[family][0]
    assert not is_noticed(recordings.cases(family)[name])

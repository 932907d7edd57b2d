"""Selectors as keys: equal ones are one, merging asks for both, and anchors miss no pod that matches."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from numalign.api.decode import decode
from numalign.api.objects.selectors import LabelSelector
from numalign.placement.rules.pods.matchers import EVERYTHING, Matcher
from tests.unit.placement.rules import neighbourhoods


def matcher(written: dict[str, Any] | None) -> Matcher:
    return Matcher(None if written is None else decode.decode(LabelSelector, written))


def test_the_order_of_labels_does_not_distinguish_selectors() -> None:
    one, other = ({"matchLabels": labels} for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))
    assert matcher(one) == matcher(other)
    assert hash(matcher(one)) == hash(matcher(other))
    assert len({matcher(one), Matcher(None), EVERYTHING}) == 3


@given(neighbourhoods.selectors, neighbourhoods.selectors, neighbourhoods.pod_labels)
def test_both_selectors_hold_after_merging(one: Any, other: Any, labels: dict[str, str]) -> None:
    merged = matcher(one).and_also(None if other is None else decode.decode(LabelSelector, other))
    expected = matcher(one).matches(labels) and (other is None or matcher(other).matches(labels))
    assert merged.matches(labels) is expected


@given(neighbourhoods.selectors, neighbourhoods.pod_labels, neighbourhoods.pod_labels)
def test_merged_pairs_hold_beside_the_selector(one: Any, pairs: dict[str, str], labels: dict[str, str]) -> None:
    expected = matcher(one).matches(labels) and pairs.items() <= labels.items()
    assert matcher(one).and_pairs(pairs).matches(labels) is expected


@given(neighbourhoods.selectors, neighbourhoods.pod_labels)
def test_a_pod_that_matches_has_an_anchor(one: Any, labels: dict[str, str]) -> None:
    anchors = matcher(one).anchors()
    assert not (anchors and matcher(one).matches(labels)) or any(pair in labels.items() for pair in anchors)

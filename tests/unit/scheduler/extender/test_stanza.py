"""kube-scheduler's configuration for the extender: complete, merged without loss, refused where it would be unsafe."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.scheduler import settings
from numalign.scheduler.extender import stanza
from numalign.scheduler.extender.extender import HIGHEST
from numalign.scheduler.extender.stanza import ExtenderOptions

URL = "https://127.0.0.1:8443"
SAFE = ExtenderOptions(url=URL, authority="ca.crt")
STOCK_SCORES = 1200
"""The sum of kube-scheduler's default weights, times a hundred."""


def document(*extenders: dict[str, Any], **more: Any) -> dict[str, Any]:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**kind, **more, **({"extenders": list(extenders)} if extenders else {})}


def test_the_choice_of_the_extender_prevails_over_all_scores_of_kube_scheduler() -> None:
    one_point = stanza.stanza(SAFE, beside_others=True)["weight"] * 10
    assert one_point > STOCK_SCORES
    assert HIGHEST == 10


def test_names_are_sent_instead_of_nodes_and_nobody_unknown_is_asked() -> None:
    entry = stanza.stanza(SAFE)
    assert (entry["nodeCacheCapable"], entry["enableHTTPS"], entry["ignorable"]) == (True, True, False)
    assert entry["tlsConfig"] == {"caFile": "ca.crt"}


def test_kube_scheduler_scores_nothing_unless_another_extender_may_refuse_the_chosen_node() -> None:
    (alone,) = stanza.alone(SAFE)["extenders"]
    assert alone["filterVerb"] == "choose"
    assert not {"prioritizeVerb", "weight"} & alone.keys()
    _, beside = stanza.merged(document({"urlPrefix": "https://other"}), "file", SAFE)["extenders"]
    assert (beside["filterVerb"], beside["prioritizeVerb"]) == ("filter", "prioritize")


def test_what_the_file_has_already_stays() -> None:
    other = {"urlPrefix": "https://other", "filterVerb": "f", "odd": {"a": 1}}
    before = document(other, profiles=[{"schedulerName": "a"}], parallelism=3)
    after = stanza.merged(before, "file", SAFE)
    assert after == {**before, "extenders": [other, stanza.stanza(SAFE, beside_others=True)]}


def test_merging_twice_changes_nothing_more() -> None:
    once = stanza.merged(document(), "file", SAFE)
    assert stanza.merged(once, "file", SAFE) == once


@pytest.mark.parametrize(
    "options, field",
    [
        (ExtenderOptions(url=URL), "--certificate-authority"),
        (ExtenderOptions(url="somewhere"), "--url"),
        (ExtenderOptions(url=URL, authority="a", certificate="b"), "--client-certificate"),
        (ExtenderOptions(url=URL, authority="a", key="b"), "--client-certificate"),
        (ExtenderOptions(url=URL, authority="a", timeout="2"), "--timeout"),
        (ExtenderOptions(url=URL, authority="a", timeout="0s"), "--timeout"),
        (ExtenderOptions(url=URL, authority="a", timeout="-1s"), "--timeout"),
        (ExtenderOptions(url=URL, authority="a", resources=("cpu",)), "--managed-resource"),
        (ExtenderOptions(url=URL, authority="a", resources=("a.com/b", "a.com/b")), "--managed-resource"),
    ],
)
def test_options_that_would_be_unsafe_or_useless_are_refused(options: ExtenderOptions, field: str) -> None:
    with pytest.raises(BadObject) as found:
        stanza.checked(options)
    assert found.value.field == field


@pytest.mark.parametrize("odd", [None, [], "text", {}, {"kind": "Pod"}, document(7), document({"urlPrefix": 7})])  # type: ignore[arg-type]
def test_a_file_of_another_kind_is_refused(odd: object) -> None:
    with pytest.raises(BadObject):
        stanza.merged(odd, "file", SAFE)


def test_two_extenders_that_bind_are_refused() -> None:
    with pytest.raises(BadObject, match="--no-bind"):
        stanza.merged(document({"urlPrefix": "https://other", "bindVerb": "b"}), "file", SAFE)


def test_a_resource_that_another_extender_manages_is_refused() -> None:
    other = {"urlPrefix": "https://other", "managedResources": [{"name": "example.com/gpu"}]}
    options = structs.replace(SAFE, resources=("example.com/gpu",))
    with pytest.raises(BadObject, match="is managed by this extender, too"):
        stanza.merged(document(other), "file", options)
    assert stanza.merged(document(other), "file", SAFE)["extenders"][0] == other


def test_the_extender_reads_its_own_defaults() -> None:
    (profile,) = settings.read(stanza.defaults(), "defaults").profiles
    assert profile.scheduler_name == "default-scheduler"

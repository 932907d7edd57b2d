"""Lists and events out of bytes: one bad object costs that object."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.kube import lists
from numalign.kube.lists import Bookmark, Unreadable
from numalign.kube.resources import NODES, PODS, TOPOLOGIES, Status

GOOD = {"metadata": {"name": "good", "namespace": "ns"}, "spec": {"nodeName": "n1"}}
HOSTILE: dict[str, Any] = {
    "a list that is text": {"metadata": {"name": "bad", "uid": "u"}, "spec": {"containers": "none"}},
    "a quantity that is none": {
        "metadata": {"name": "bad", "uid": "u"},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "2 cores"}}}]},
    },
    "an absurd number": {"metadata": {"name": "bad", "uid": "u"}, "spec": {"priority": 10**30}},
    "a status that is a number": {"metadata": {"name": "bad", "uid": "u"}, "status": 7},
}


def listed(*items: Any, **meta: str) -> bytes:
    return json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "5"} | meta, "items": items}).encode()


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_object_in_a_list_leaves_the_others_readable(bad: Any) -> None:
    first, second, third = lists.page(PODS, listed(GOOD, bad, GOOD)).items
    assert isinstance(second, Unreadable)
    assert (second.metadata.name, second.metadata.uid) == ("bad", "u")
    assert first == third
    assert not isinstance(first, Unreadable)


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE)
def test_an_unreadable_object_in_an_event_keeps_its_identity(bad: Any) -> None:
    event = lists.watch_event(PODS, json.dumps({"type": "MODIFIED", "object": bad}).encode())
    assert isinstance(event.object, Unreadable)
    assert event.object.metadata.uid == "u"


@pytest.mark.parametrize("bad", [7, None, [], "text", {}, {"metadata": 3}, {"metadata": {"name": 3}}])
def test_what_has_no_name_is_unreadable(bad: Any) -> None:
    (item,) = lists.page(PODS, listed(bad)).items
    assert isinstance(item, Unreadable)
    assert item.metadata.name == ""


def test_nulls_are_absent_fields() -> None:
    (pod,) = lists.page(PODS, listed(GOOD | {"status": None})).items
    assert not isinstance(pod, Unreadable)
    assert pod.spec.node_name == "n1"


@pytest.mark.parametrize("raw", [b'{"metadata":{},"items":null}', b'{"metadata":{}}', b'{"items":[]}'])
def test_a_list_of_nothing_is_empty(raw: bytes) -> None:
    assert lists.page(NODES, raw).items == []


def test_a_page_has_the_token_of_the_next_one() -> None:
    page = lists.page(PODS, listed(GOOD, **{"continue": "token"}))
    assert (page.metadata.continue_, page.metadata.resource_version) == ("token", "5")


@pytest.mark.parametrize("raw", [b"", b"[]", b"<html>", b'{"items": [{"metadata"', b'{"items": 7}'])
def test_what_is_no_list_is_named_as_such(raw: bytes) -> None:
    with pytest.raises(BadObject, match="PodList: is not a Kubernetes list or event"):
        lists.page(PODS, raw)


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b'{"type":"ADDED"}', b'{"type":"ADDED","object":{"metad'])
def test_what_is_no_event_is_named_as_such(line: bytes) -> None:
    with pytest.raises(BadObject, match="WatchEvent"):
        lists.watch_event(PODS, line)


def test_an_error_event_carries_the_status() -> None:
    line = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}).encode()
    event = lists.watch_event(PODS, line)
    assert isinstance(event.object, Status)
    assert event.object.code == 410


# The second is as kube-apiserver 1.37 sends it for pods.
@pytest.mark.parametrize("spec", ["{}", '{"containers":null}', "7"])
def test_a_bookmark_is_read_for_its_version_only(spec: str) -> None:
    line = '{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"},"spec":' + spec + "}}"
    event = lists.watch_event(PODS, line.encode())
    assert isinstance(event.object, Bookmark)
    assert event.object.metadata.resource_version == "9"


def test_a_report_with_a_malformed_zone_is_salvaged() -> None:
    zones = [{"name": "node-0", "type": "Node"}, {"name": "node-1", "type": 7}]
    (report,) = lists.page(TOPOLOGIES, listed({"metadata": {"name": "n1"}, "zones": zones})).items
    assert not isinstance(report, Unreadable)
    assert report.zones is not None
    assert report.zones[0].name == "node-0"


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_come_out_whole_however_they_were_cut(whole: list[bytes], data: st.DataObject) -> None:
    stream, split, found = b"".join(line + b"\n" for line in whole), lists.Lines(), list[bytes]()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += split.feed(stream[:size])
        stream = stream[size:]
    assert found == whole


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LONGEST_LINE", 10)
    split = lists.Lines()
    assert split.feed(b"12345678") == []
    with pytest.raises(lists.LineTooLong):
        split.feed(b"12345678")

"""Lists in pages: one version however long it takes, and the truth when it took too long."""

from typing import Any

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.apiserver.verbs.list import (
    ListOptions,
    ListPage,
    SelectionPredicate,
    encode_token,
    list_objects,
    predicate,
)
from tests.unit.simulator.apiserver import doors

ALL = SelectionPredicate("default")


def filled(count: int = 5, **how: int) -> Api:
    api = doors.door(**how)
    for number in range(count):
        api.create(CONFIGMAPS, doors.named(f"c{number}", labels={"odd": str(number % 2)}))
    return api


def page(api: Api, chosen: SelectionPredicate = ALL, **asked: Any) -> ListPage:
    return list_objects(api.state.store, CONFIGMAPS, chosen, ListOptions(**asked))


def names(found: ListPage) -> list[str]:
    return [entry.name for entry in found.entries]


def test_pages_follow_each_other() -> None:
    api = filled()
    first = page(api, limit=2)
    second = page(api, limit=2, token=first.token)
    third = page(api, limit=2, token=second.token)
    assert [names(first), names(second), names(third)] == [["c0", "c1"], ["c2", "c3"], ["c4"]]
    assert (first.remaining, second.remaining, third.token) == (3, 1, "")


def test_later_pages_show_the_version_of_the_first() -> None:
    api = filled()
    first = page(api, limit=2)
    api.delete(CONFIGMAPS, "c3", "default")
    api.create(CONFIGMAPS, doors.named("c2-new"))
    second = page(api, limit=9, token=first.token)
    assert (names(second), second.version) == (["c2", "c3", "c4"], first.version)


def test_what_remains_is_not_counted_for_selections() -> None:
    first = page(filled(), predicate(CONFIGMAPS, "default", "odd=0"), limit=1)
    assert (names(first), first.remaining, bool(first.token)) == (["c0"], 0, True)


def test_a_token_that_is_too_old_comes_back_with_one_for_the_rest() -> None:
    api = filled(watch_cache_size=3)
    first = page(api, limit=2)
    for number in range(4):
        api.create(CONFIGMAPS, doors.named(f"d{number}"))
    with pytest.raises(StatusError) as caught:
        page(api, token=first.token)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    rest = page(api, token=(caught.value.list_meta or {})["continue"])
    assert names(rest) == ["c2", "c3", "c4", "d0", "d1", "d2", "d3"]


def test_an_exact_version_is_shown_as_it_was() -> None:
    api = filled(2)
    version = str(api.state.store.version)
    api.delete(CONFIGMAPS, "c0", "default")
    api.create(CONFIGMAPS, doors.named("c9"))
    then = page(api, version=version, match="Exact")
    assert (names(then), str(then.version)) == (["c0", "c1"], version)


def token(version: int, start: str) -> str:
    return encode_token(version, start)


# Sentences as a kube-apiserver 1.37 answered.
COMPLAINTS = {
    "no version": (
        {"version": "x"},
        400,
        'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
    ),
    "a version to come": ({"version": "999"}, 504, "Timeout: Too large resource version: 999, current: 6"),
    "padded": (
        {"token": "e30="},
        400,
        "invalid continue token: continue key is not valid: illegal base64 data at input byte 3",
    ),
    "of version 0": (
        {"token": token(0, "/a")},
        400,
        "invalid continue token: continue key is not valid: incorrect encoded "
        "start resourceVersion (version meta.k8s.io/v1)",
    ),
    "without a start": (
        {"token": token(3, "")},
        400,
        "invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
    ),
    "that climbs": ({"token": token(3, "../x")}, 400, "invalid continue token: continue key is not valid: ../x"),
    "with a version": (
        {"token": token(3, "/a"), "version": "5"},
        400,
        "specifying resource version is not allowed when using continue",
    ),
    "from the future": ({"token": token(999, "/a")}, 504, "Timeout: Too large resource version: 999, current: 6"),
}


@pytest.mark.parametrize("asked, code, sentence", COMPLAINTS.values(), ids=COMPLAINTS)
def test_what_cannot_be_listed_is_refused(asked: dict[str, Any], code: int, sentence: str) -> None:
    with pytest.raises(StatusError) as caught:
        page(filled(), **asked)
    assert (caught.value.code, caught.value.message) == (code, sentence)


def test_lists_are_in_the_order_of_etcd_s_keys() -> None:
    api = doors.door()
    for namespace in ("a", "a-b", "b"):
        api.create(CONFIGMAPS, doors.named("x", namespace))
    found = list_objects(api.state.store, CONFIGMAPS, SelectionPredicate())
    assert [entry.namespace for entry in found.entries] == ["a-b", "a", "b"]

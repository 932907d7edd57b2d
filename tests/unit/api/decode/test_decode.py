"""Every object is either read or refused with the object, the field and the remedy named."""

import json
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import field

from numalign.api import errors
from numalign.api.decode import decode, quantity
from numalign.api.decode.structs import Wire
from numalign.api.objects import node, pod
from tests.strategies import api

WEB = {"metadata": {"name": "web", "namespace": "default"}}


def refusal(raw: Any, kind: type[Any] = pod.Pod) -> errors.BadObject:
    with pytest.raises(errors.BadObject) as caught:
        decode.decode(kind, raw)
    return caught.value


SENTENCES: dict[str, tuple[Any, str]] = {
    "bad amount": (
        {**WEB, "spec": {"containers": [{}, {"resources": {"requests": {"memory": "1Gi", "cpu": "2 cores"}}}]}},
        'Pod default/web, spec.containers[1].resources.requests[cpu]: "2 cores" is not a quantity; write a number like',
    ),
    "wrong type": (
        {**WEB, "spec": {"nodeName": 7}},
        "Pod default/web, spec.nodeName: expected a string, got a whole number; correct it or leave it out",
    ),
    "wrong type in a map": (
        {"metadata": {"name": "web", "labels": {"a": "1", "tier": 2}}},
        "Pod web, metadata.labels[tier]: expected a string, got a whole number; correct it or leave it out",
    ),
    "wrong type of key": (
        {"metadata": {"name": "web", "labels": {1: "a"}}},
        "Pod web, metadata.labels: every key: expected a string, got a whole number; correct it or leave it out",
    ),
    "null in a list": (
        {**WEB, "spec": {"containers": [None]}},
        "Pod default/web, spec.containers[0]: expected an object, got null; correct it or leave it out",
    ),
    "number out of range": (
        {**WEB, "spec": {"priority": 2**31}},
        "Pod default/web, spec.priority: expected a whole number <= 2147483647; correct it or leave it out",
    ),
    "fraction": (
        b'{"metadata": {"name": "web"}, "spec": {"priority": 1.5}}',
        "Pod web, spec.priority: expected a whole number, got a number with a fraction; correct it or leave it out",
    ),
    "integer of thousands of digits": (
        b'{"metadata": {"name": "web"}, "spec": {"overhead": {"cpu": ' + b"9" * 5000 + b"}}}",
        "Pod web, spec.overhead[?]: Integer value out of range; correct it or leave it out",
    ),
    "name of the wrong type": (
        {"metadata": {"name": ["web"]}},
        "Pod, metadata.name: expected a string, got a list; correct it or leave it out",
    ),
    "not an object": (b"[1]", "Pod: expected an object, got a list; send one whole object, as JSON in UTF-8"),
    "null": (b"null", "Pod: expected an object, got null; send one whole object, as JSON in UTF-8"),
    "truncated": (b'{"metadata": {"na', "Pod: Input data was truncated; send one whole object, as JSON in UTF-8"),
    "not JSON": (
        b"kind: Pod",
        "Pod: JSON is malformed: invalid character (byte 0); send one whole object, as JSON in UTF-8",
    ),
    "NaN": (b'{"spec": {"priority": NaN}}', "Pod: JSON is malformed: invalid character (byte 22); send"),
    "not UTF-8": (b'{"metadata": {"name": "\xff"}}', "Pod: 'utf-8' codec can't decode byte 0xff"),
    "lone surrogate": ('{"metadata": {"name": "\ud800"}}', "Pod: 'utf-8' codec can't encode character"),
    "nested too deeply": (b'{"x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", "Pod: nested too deeply; no object"),
    "nothing at all": (None, "Pod: expected an object, got null; send one whole object"),
}


@pytest.mark.parametrize("raw, sentence", SENTENCES.values(), ids=SENTENCES)
def test_refusals_name_object_field_and_remedy(raw: Any, sentence: str) -> None:
    assert str(refusal(raw)).startswith(sentence)


def test_the_parts_are_kept_apart() -> None:
    error = refusal({"metadata": {"name": "worker-7"}, "status": {"capacity": {"cpu": True}}}, node.Node)
    assert (error.kind, error.name, error.field) == ("Node", "worker-7", "status.capacity[cpu]")
    assert error.why.startswith("true is not a quantity")


def test_the_content_of_an_object_cannot_forge_the_message() -> None:
    error = refusal({"metadata": {"name": "a\nERROR b"}, "spec": {"overhead": {"x\n": "\x1b[2J - at `$.spec`"}}})
    assert (error.name, error.field) == (r"a\nERROR b", r"spec.overhead[x\n]")
    assert str(error).isprintable()


def test_names_and_keys_of_any_length_give_short_messages() -> None:
    long = "x" * 10**6
    assert len(str(refusal({"metadata": {"name": long, "namespace": long}, "spec": {"overhead": {long: long}}}))) < 600


NULLS: dict[str, Any] = {
    "field": {"spec": {"priority": None, "nodeName": None}},
    "object": {"metadata": None, "spec": None, "status": None},
    "list": {"spec": {"containers": None, "tolerations": None}},
    "map": {"metadata": {"labels": None}, "spec": {"overhead": None}},
    "amount": {"spec": {"overhead": {"cpu": None}}},
    "label": {"metadata": {"labels": {"app": None}}},
}


@pytest.mark.parametrize("raw", NULLS.values(), ids=NULLS)
def test_null_counts_as_absent(raw: dict[str, Any]) -> None:
    assert decode.decode(pod.Pod, raw) == pod.Pod()


def test_the_rest_of_an_object_with_a_null_is_read() -> None:
    raw = b'{"metadata": {"labels": null, "name": "web"}, "spec": {"overhead": {"cpu": 0.1, "memory": 1e3}}}'
    read = decode.decode(pod.Pod, raw)
    assert read.metadata.name == "web"
    assert {name: str(amount) for name, amount in read.spec.overhead.items()} == {"cpu": "100m", "memory": "1e3"}


def test_unquoted_amounts_are_read_from_their_text() -> None:
    raw = b'{"spec": {"overhead": {"cpu": 0.1, "memory": 1e3, "a/b": 12345678901234567890123}}}'
    assert {name: str(amount) for name, amount in decode.decode(pod.Pod, raw).spec.overhead.items()} == {
        "cpu": "100m",
        "memory": "1e3",
        "a/b": "12345678901234567890123",
    }


def test_unknown_fields_are_ignored() -> None:
    assert decode.decode(pod.Pod, b'{"kind": 3, "spec": {"subdomain": 3, "future": {"a": [1]}}}') == pod.Pod()


def test_the_last_of_two_equal_keys_counts() -> None:
    assert decode.decode(pod.Pod, b'{"metadata": {"name": "a", "name": "b"}}').metadata.name == "b"


@pytest.mark.parametrize("wrap", [dict, MappingProxyType], ids=["dict", "read-only"])
def test_parsed_mappings_are_read_like_json(wrap: Any) -> None:
    raw = wrap({"spec": wrap({"overhead": wrap({"cpu": 2})})})
    assert decode.decode(pod.Pod, raw).spec.overhead == {"cpu": quantity.parse("2")}


def test_yaml_aliases_do_not_multiply() -> None:
    lines = [f"x{depth}: &x{depth} [{', '.join([f'*x{depth - 1}'] * 9)}]" for depth in range(1, 60)]
    text = "x0: &x0 [null]\n" + "\n".join(lines) + "\nspec: {priority: null, nodeName: web}\n"
    assert decode.decode(pod.Pod, yaml.safe_load(text)).spec.node_name == "web"


def test_an_object_inside_itself_is_refused() -> None:
    assert "nested too deeply" in str(refusal(yaml.safe_load("&me {metadata: {name: web}, me: *me}")))


def test_half_a_character_is_replaced() -> None:
    assert decode.decode(pod.Pod, yaml.safe_load(r'metadata: {name: "a\ud800"}')).metadata.name == "a\ufffd"


@given(api.pod_objects())
def test_json_and_yaml_give_the_same_pod(raw: dict[str, Any]) -> None:
    from_yaml = decode.decode(pod.Pod, yaml.safe_load(yaml.safe_dump(raw)))
    assert from_yaml == decode.decode(pod.Pod, json.dumps(raw))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


def outcome(kind: type[Any], raw: Any) -> str:
    try:
        return type(decode.decode(kind, raw)).__name__
    except errors.BadObject as error:
        return str(error)


@given(
    st.fixed_dictionaries({}, optional={"metadata": JSON, "spec": JSON, "status": JSON}),
    st.sampled_from([pod.Pod, node.Node]),
)
def test_anything_is_read_or_refused(raw: dict[str, Any], kind: type[Any]) -> None:
    assert outcome(kind, raw).startswith(kind.__name__)


@given(st.binary() | st.text(), st.sampled_from([pod.Pod, node.Node]))
def test_any_bytes_are_read_or_refused(raw: bytes | str, kind: type[Any]) -> None:
    assert outcome(kind, raw).startswith(kind.__name__)


class Numbered(Wire, frozen=True):
    by_number: dict[int, str] = field(default_factory=dict)
    name: str = ""


def test_numbers_as_keys_do_not_hide_what_is_wrong_elsewhere() -> None:
    with pytest.raises(errors.BadObject, match="name: expected a string, got a whole number"):
        decode.decode(Numbered, b'{"byNumber": {"1": "a"}, "name": 7}')


def test_numbers_as_keys_are_read_beside_a_null() -> None:
    assert decode.decode(Numbered, b'{"byNumber": {"1": "a"}, "name": null}') == Numbered({1: "a"})

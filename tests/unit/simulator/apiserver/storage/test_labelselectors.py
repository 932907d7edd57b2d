"""Label selectors: what is meant, and the sentence for what is no selector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.apiserver.storage import labelselectors
from numalign.simulator.apiserver.storage.errors import StatusError

RED = {"app": "red", "tier": "web", "size": "12"}

MATCHES = {
    "": True,
    "app=red": True,
    "app==red": True,
    "app!=red": False,
    "color!=red": True,
    "app in (red,blue)": True,
    "app in (blue)": False,
    "app notin (blue)": True,
    "color notin (blue)": True,
    "app": True,
    "!app": False,
    "!color": True,
    " app = red , tier": True,
    "app=red,tier=db": False,
    "size>11": True,
    "size<12": False,
    "app>3": False,
    "color=": False,
    "in in (in)": False,
    "example.com/app notin (x)": True,
}


@pytest.mark.parametrize("text, expected", MATCHES.items(), ids=MATCHES)
def test_a_selector_means_what_it_says(text: str, expected: bool) -> None:
    assert labelselectors.matches(labelselectors.parse(text), RED) is expected


# As a kube-apiserver 1.37 answered.
COMPLAINTS = {
    "a===b": "unable to parse requirement: found '=', expected: identifier",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    ",": "found ',', expected: !, identifier, or 'end of string'",
    "a=b,": "found '', expected: identifier after ','",
    "!": "unable to parse requirement: found '', expected: identifier",
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a>b": "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be "
    "an integer",
    "-a=b": 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric '
    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name', "
    " or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    "a=-b": 'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string or '
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    "a b c": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "!a b": "found 'b', expected: ',' or 'end of string'",
}


@pytest.mark.parametrize("text, sentence", COMPLAINTS.items(), ids=COMPLAINTS)
def test_what_is_no_selector_gets_the_real_sentence(text: str, sentence: str) -> None:
    with pytest.raises(StatusError) as caught:
        labelselectors.parse(text)
    assert (caught.value.code, caught.value.message) == (400, sentence)


@given(st.text(alphabet="ab=!(), <>innot/.-", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        labelselectors.parse(text)
    except StatusError as refusal:
        code = refusal.code
    else:
        code = 400
    assert code == 400


OBJECTS: dict[str, tuple[dict[str, object] | None, object]] = {
    "nothing where there is none": (None, None),
    "everything where it is empty": ({}, ()),
}


@pytest.mark.parametrize("selector, expected", OBJECTS.values(), ids=OBJECTS)
def test_an_object_selects(selector: dict[str, object] | None, expected: object) -> None:
    assert labelselectors.requirements_of(selector) == expected


def test_an_object_is_written_as_scales_carry_it() -> None:
    wanted = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["z", "y"]},
            {"key": "m", "operator": "Exists"},
            {"key": "n", "operator": "DoesNotExist"},
        ],
    }
    assert labelselectors.selector_text(wanted) == "a=b,k in (y,z),m,!n"

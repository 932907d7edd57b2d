"""Settings on the command line mean what they mean to Helm's --set."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.deploy import overrides

MEANT = [
    ("a=1", {"a": 1}),
    ("a.b=x,c=true", {"a": {"b": "x"}, "c": True}),
    ("a=", {"a": ""}),
    ("a=null", {"a": None}),
    ("a=007", {"a": "007"}),
    ("a=1.5", {"a": "1.5"}),
    ("a={x,2}", {"a": ["x", 2]}),
    ("a={}", {"a": []}),
    ("a[1].b=x", {"a": [None, {"b": "x"}]}),
    ("a[0].b=x,a[0].c=y", {"a": [{"b": "x", "c": "y"}]}),
    (r"a.kubernetes\.io/os=linux", {"a": {"kubernetes.io/os": "linux"}}),
    (r"a=x\,y=z", {"a": "x,y=z"}),
    ("a=b=c", {"a": "b=c"}),
]
REFUSED = ["", "a", "=x", "a[x]=1", "a[=1", "a..b=1", "a[100000]=1", "a[5000]=1", "[0]=1"]


@pytest.mark.parametrize("setting, meant", MEANT, ids=[setting for setting, _ in MEANT])
def test_a_setting_is_entered(setting: str, meant: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    overrides.applied(found, setting)
    assert found == meant


def test_text_stays_text() -> None:
    found: dict[str, Any] = {}
    overrides.applied(found, "a=1,b={true,null}", text=True)
    assert found == {"a": "1", "b": ["true", "null"]}


@pytest.mark.parametrize("setting", REFUSED)
def test_what_is_no_setting_is_refused(setting: str) -> None:
    with pytest.raises(BadObject, match=r"^Setting"):
        overrides.applied({}, setting)


@pytest.mark.parametrize("setting", ["a.b=1", "a[0]=1"])
def test_a_setting_inside_a_scalar_is_refused(setting: str) -> None:
    with pytest.raises(BadObject, match="is not inside"):
        overrides.applied({"a": "x"}, setting)


@given(st.text(alphabet="ab.=,[]{}\\0", max_size=20))
def test_no_setting_does_more_than_be_refused(setting: str) -> None:
    with contextlib.suppress(BadObject):
        overrides.applied({}, setting)

"""Every object that a real server was shown gets from us the same yes, or the same no in the same words."""

import re
from typing import Any

import pytest

from tests.unit.simulator.apiserver.admission import recorded

CREATES = recorded.load("refused_creates")
UPDATES = recorded.load("refused_updates")
MISFITS = recorded.load("misfits")

ANY_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
# Here the real server prints its own structs, which nobody reads.
PRINTED = "job template"


def comparable(status: dict[str, Any] | None) -> dict[str, Any] | None:
    """Without the drawn uid, and without the summary of the causes, which `refusals` makes."""
    if status is None:
        return None
    causes = [[field, reason, ANY_UID.sub("UID", message)] for field, reason, message in status["causes"]]
    message = {} if status["code"] == 422 else {"message": status["message"]}
    return {"code": status["code"], "reason": status["reason"], "causes": causes} | message


@pytest.mark.parametrize("tree, status", CREATES.values(), ids=CREATES)
def test_a_new_object_is_judged_as_by_the_real_server(tree: Any, status: Any) -> None:
    assert comparable(recorded.refusal(recorded.arrived(tree))) == comparable(status)


@pytest.mark.parametrize("name", [each for each in UPDATES if each != PRINTED])
def test_a_changed_object_is_judged_as_by_the_real_server(name: str) -> None:
    old, new, status = UPDATES[name]
    assert comparable(recorded.refusal(new, old)) == comparable(status)


def test_a_job_cannot_get_another_template() -> None:
    old, new, status = UPDATES[PRINTED]
    ours = recorded.refusal(new, old)
    assert ours is not None
    assert [cause[:2] for cause in ours["causes"]] == [cause[:2] for cause in status["causes"]]
    assert ours["causes"][0][2].endswith(": field is immutable")


@pytest.mark.parametrize("tree, status", MISFITS.values(), ids=MISFITS)
def test_a_field_of_the_wrong_type_makes_the_body_unreadable(tree: Any, status: Any) -> None:
    whole = recorded.arrived(tree) if isinstance(tree["metadata"], dict) else tree
    assert comparable(recorded.refusal(whole)) == comparable(status)


def test_the_recordings_have_something_to_say() -> None:
    refused = [status for *_, status in (*CREATES.values(), *UPDATES.values(), *MISFITS.values()) if status]
    assert len(refused) > 200
    assert {status["code"] for status in refused} == {400, 403, 422}

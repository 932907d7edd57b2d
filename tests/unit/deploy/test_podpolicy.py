"""The admission policies about pods for direct mode."""

from pathlib import Path
from typing import Any

import pytest

from numalign.api.attributes import directresult, directspec
from numalign.api.decode import yamltext
from numalign.deploy import podpolicy, values
from numalign.deploy.release import Release
from numalign.deploy.render import render

ROOT = Path(__file__).parents[3]


def test_the_manifest_in_the_examples_is_this_policy() -> None:
    """Written by `make rbac`."""
    file = ROOT / "examples/direct-mode-policy.yaml"
    assert [each.value for each in yamltext.documents(file.read_text(), file.name)] == podpolicy.manifest()


def test_the_policy_about_decisions_concerns_no_pod_without_one_and_no_other_annotation() -> None:
    policy, binding = podpolicy.decisions("some")
    assert directresult.RESULT in policy["spec"]["matchConditions"][0]["expression"]
    assert not any(name in str(policy) for name in directspec.SPECS)
    assert [each["reason"] for each in policy["spec"]["validations"]] == ["Forbidden"]
    assert (binding["spec"]["policyName"], binding["spec"]["validationActions"]) == ("some", ["Deny"])


@pytest.mark.parametrize(
    "agent, is_there",
    [
        ({"directMode": True}, True),
        (
            {
                "nodeGroups": [
                    {"name": "a", "nodeSelector": {"pool": "a"}},
                    {"name": "b", "nodeSelector": {"pool": "b"}, "directMode": True},
                ]
            },
            True,
        ),
        ({"directMode": True, "decisionPolicy": False}, False),
        ({}, False),
    ],
    ids=["direct mode", "direct mode of a group", "not wanted", "no direct mode"],
)
def test_agents_that_obey_decisions_come_with_the_policy_about_them(agent: dict[str, Any], is_there: bool) -> None:
    rendered = render(values.read({"agent": agent}), Release(), ())
    names = [each["metadata"]["name"] for each in rendered if each["kind"] == "ValidatingAdmissionPolicy"]
    assert ("numalign-agent-decisions" in names) == is_there


def test_every_message_names_the_field() -> None:
    policy, binding = podpolicy.manifest()
    assert all(each["message"].startswith("metadata.annotations[") for each in policy["spec"]["validations"])
    assert binding["spec"]["validationActions"] == ["Deny"]

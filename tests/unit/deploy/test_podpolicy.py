"""The admission policy about pods for direct mode."""

from pathlib import Path

from numalign.api.decode import yamltext
from numalign.deploy import podpolicy

ROOT = Path(__file__).parents[3]


def test_the_manifest_in_the_examples_is_this_policy() -> None:
    """Written by `make rbac`."""
    file = ROOT / "examples/direct-mode-policy.yaml"
    assert [each.value for each in yamltext.documents(file.read_text(), file.name)] == podpolicy.manifest()


def test_every_message_names_the_field() -> None:
    policy, binding = podpolicy.manifest()
    assert all(each["message"].startswith("metadata.annotations[") for each in policy["spec"]["validations"])
    assert binding["spec"]["validationActions"] == ["Deny"]

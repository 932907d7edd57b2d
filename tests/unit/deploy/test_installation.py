"""An installation with the operator: its objects beside those of the other components."""

import json

import pytest

from numalign.api.errors import BadObject
from numalign.deploy import installation, values
from numalign.deploy.release import Release
from numalign.deploy.render import ORDER

OPERATED = {"agent": {"enabled": False}, "scheduler": {"enabled": False}, "operator": {"enabled": True}}
RELEASE = Release()


def test_components_are_parts_of_the_whole_in_the_order_of_their_kinds() -> None:
    found = values.read({**OPERATED, "gc": {"enabled": True}, "namespace": {"create": True}})
    whole = installation.objects(found, RELEASE)
    parts = [each for name in installation.COMPONENTS for each in installation.objects(found, RELEASE, [name])]
    assert sorted(map(json.dumps, whole)) == sorted(map(json.dumps, parts))
    ranks = [ORDER.index(each["kind"]) for each in whole]
    assert ranks == sorted(ranks)
    assert [each["kind"] for each in whole].count("Namespace") == 1


def test_definitions_of_the_operator_follow_the_settings_of_definitions() -> None:
    def definitions(crds: dict[str, bool]) -> list[dict[str, str]]:
        found = installation.objects(values.read({**OPERATED, "crds": crds}), RELEASE, ["operator"])
        return [each["metadata"].get("annotations", {}) for each in found if each["kind"] == "CustomResourceDefinition"]

    assert definitions({"install": False}) == []
    assert definitions({"keep": False}) == [{}, {}]
    assert definitions({}) == [{"helm.sh/resource-policy": "keep"}] * 2


def test_without_rbac_the_operator_is_granted_nothing() -> None:
    found = installation.objects(values.read({**OPERATED, "rbac": {"create": False}}), RELEASE, ["operator"])
    assert {each["kind"] for each in found} == {"CustomResourceDefinition", "ServiceAccount", "Deployment"}


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(BadObject, match="Component oprator: there is none of this name; did you mean operator"):
        installation.objects(values.read({}), RELEASE, ["oprator"])

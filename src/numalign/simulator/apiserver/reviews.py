"""Questions about permissions, answered with yes: roles are stored here, not enforced.

`kubectl auth can-i`, `whoami` and the like post a review and read its status; nothing of it is kept."""

from typing import Final

from numalign.simulator.apiserver import resources
from numalign.simulator.apiserver.resources import Resource
from numalign.simulator.trees import Tree

USER: Final = {"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]}
EVERYTHING: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def answered(resource: Resource, tree: Tree, now: str) -> Tree:
    head: Tree = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
    if resource is resources.SELFSUBJECTREVIEWS:
        return head | {"metadata": {"creationTimestamp": now}, "status": {"userInfo": USER}}
    status = EVERYTHING if resource is resources.SELFSUBJECTRULESREVIEWS else {"allowed": True}
    return head | {"spec": tree.get("spec") or {}, "status": status}

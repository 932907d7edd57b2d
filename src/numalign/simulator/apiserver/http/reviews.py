"""Questions about permissions, answered with yes unless they are about strangers: roles are stored here, not enforced.

`kubectl auth can-i`, `whoami` and the like post a review and read its status; nothing of it is kept."""

from typing import Final

from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree

USER: Final = {"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]}
ANONYMOUS: Final = "system:anonymous"
TOKEN: Final = "admin"
EVERYTHING: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def answered(resource: Resource, tree: Tree, now: str) -> Tree:
    head: Tree = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
    if resource is resources.SELFSUBJECTREVIEWS:
        return head | {"metadata": {"creationTimestamp": now}, "status": {"userInfo": USER}}
    spec = tree.get("spec") or {}
    return head | {"spec": spec, "status": _status(resource, spec)}


def _status(resource: Resource, spec: Tree) -> Tree:
    if resource is resources.SELFSUBJECTRULESREVIEWS:
        return EVERYTHING
    if resource is resources.TOKENREVIEWS:
        # Who calls is not asked here, so the one user there is has but one token.
        return {"authenticated": True, "user": USER} if spec.get("token") == TOKEN else {}
    return {"allowed": spec.get("user") != ANONYMOUS}

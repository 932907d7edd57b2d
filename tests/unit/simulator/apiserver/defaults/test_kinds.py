import pytest

from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver.admission.recorded import World

GOING = World((resources.NAMESPACES, {"metadata": {"name": "dying", "deletionTimestamp": "2026-11-16T05:26:48Z"}}))


def pod(namespace: str, **metadata: str) -> Tree:
    spec = {"containers": [{"name": "c", "image": "b"}]}
    return {"metadata": {"name": "p", "namespace": namespace} | metadata, "spec": spec}


def refused(tree: Tree) -> StatusError:
    with pytest.raises(StatusError) as refusal:
        admission.prepare(resources.PODS, tree, None, GOING)
    return refusal.value


def test_nothing_goes_into_a_namespace_that_is_not_there() -> None:
    refusal = refused(pod("nope"))
    assert (refusal.code, refusal.message) == (404, 'namespaces "nope" not found')
    assert refusal.details == {"name": "nope", "kind": "namespaces"}


@pytest.mark.parametrize("metadata, name", [({}, "p"), ({"generateName": "x-"}, "x-")], ids=["named", "generated"])
def test_nothing_goes_into_a_namespace_that_is_going(metadata: dict[str, str], name: str) -> None:
    refusal = refused(pod("dying", **metadata))
    why = "unable to create new content in namespace dying because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": "namespace dying is being terminated",
        "field": "metadata.namespace",
    }
    assert (refusal.code, refusal.message) == (403, f'pods "{name}" is forbidden: {why}')
    assert refusal.details == {"name": name, "kind": "pods", "causes": [cause]}


def test_what_is_there_may_still_change() -> None:
    before = admission.prepare(resources.PODS, pod("default"), None, World())
    after = before | {"metadata": before["metadata"] | {"namespace": "dying"}}
    assert admission.prepare(resources.PODS, after, before, GOING)["metadata"]["namespace"] == "dying"


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_the_servers_own_namespaces_are_there_from_the_start(namespace: str) -> None:
    assert admission.prepare(resources.PODS, pod(namespace), None, World())["status"]["phase"] == "Pending"


def test_finalizers_change_only_through_their_own_door() -> None:
    made = admission.prepare(resources.NAMESPACES, {"metadata": {"name": "a"}}, None, World())
    after = admission.prepare(resources.NAMESPACES, {"metadata": {"name": "a"}, "spec": {}}, made, World())
    assert after["spec"] == {"finalizers": ["kubernetes"]}


def test_an_account_that_is_not_there_cannot_be_used() -> None:
    tree = pod("default")
    tree["spec"]["serviceAccountName"] = "ghost"
    refusal = refused(tree)
    why = 'error looking up service account default/ghost: serviceaccount "ghost" not found'
    assert refusal.message == f'pods "p" is forbidden: {why}'

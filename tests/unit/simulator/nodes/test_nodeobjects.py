from numalign.simulator.nodes import nodeobjects
from numalign.simulator.trees import Tree

STATIC: Tree = {
    "metadata": {"name": "proxy", "labels": {"tier": "node"}, "annotations": {"a": "b"}},
    "spec": {"containers": [{"name": "main"}], "tolerations": [{"key": "k"}]},
}


def test_a_mirror_is_named_after_its_node_and_bound_to_it() -> None:
    tree = nodeobjects.mirror_pod(STATIC, "n1", "u-1", "T")
    assert (tree["metadata"]["name"], tree["metadata"]["namespace"]) == ("proxy-n1", "default")
    assert tree["spec"]["nodeName"] == "n1"
    assert tree["metadata"]["ownerReferences"][0]["uid"] == "u-1"


def test_a_mirror_says_that_it_is_one_and_keeps_what_was_said() -> None:
    annotations = nodeobjects.mirror_pod(STATIC, "n1", "u-1", "T")["metadata"]["annotations"]
    assert annotations["a"] == "b"
    assert annotations[nodeobjects.MIRROR] == annotations[nodeobjects.HASH]
    assert (annotations[nodeobjects.SEEN], annotations[nodeobjects.SOURCE]) == ("T", "file")


def test_a_mirror_tolerates_being_where_it_is() -> None:
    tolerations = nodeobjects.mirror_pod(STATIC, "n1", "u-1", "T")["spec"]["tolerations"]
    assert tolerations == [{"key": "k"}, {"operator": "Exists", "effect": "NoExecute"}]


def test_the_same_file_has_another_hash_on_another_node_and_is_not_changed() -> None:
    one, other = (nodeobjects.mirror_pod(STATIC, node, "u", "T") for node in ("n1", "n2"))
    assert one["metadata"]["annotations"][nodeobjects.HASH] != other["metadata"]["annotations"][nodeobjects.HASH]
    assert "nodeName" not in STATIC["spec"]

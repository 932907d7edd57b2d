"""A pod's affinity and selectors are read as they are written."""

from numalign.api.decode import decode
from numalign.api.objects.pod import Affinity, NodeSelectorRequirement, Pod, PodAffinityTerm
from numalign.api.objects.selectors import LabelSelector

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, "namespaces": ["a"]}


def test_node_affinity_has_required_terms_and_weighted_ones() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    written = {REQUIRED: {"nodeSelectorTerms": [term]}, PREFERRED: [{"weight": 7, "preference": term}]}
    read = decode.decode(Affinity, {"nodeAffinity": written}).node_affinity
    assert read is not None
    assert read.required is not None
    expected = (NodeSelectorRequirement(key="zone", operator="In", values=("a",)),)
    assert read.required.node_selector_terms[0].match_expressions == expected
    assert (read.preferred[0].weight, read.preferred[0].preference.match_expressions) == (7, expected)


def test_pod_affinity_and_its_opposite_have_the_same_form() -> None:
    written = {REQUIRED: [TERM], PREFERRED: [{"weight": 3, "podAffinityTerm": TERM}]}
    read = decode.decode(Affinity, {"podAffinity": written, "podAntiAffinity": written})
    selector = LabelSelector(match_labels={"app": "web"})
    expected = PodAffinityTerm(topology_key="zone", label_selector=selector, namespaces=("a",))
    assert read.pod_affinity == read.pod_anti_affinity
    assert read.pod_affinity is not None
    assert (read.pod_affinity.required, read.pod_affinity.preferred[0].pod_affinity_term) == ((expected,), expected)


def test_a_missing_selector_and_an_empty_one_differ() -> None:
    spec = {"topologySpreadConstraints": [{"topologyKey": "a"}, {"topologyKey": "b", "labelSelector": {}}]}
    absent, empty = decode.decode(Pod, {"spec": spec}).spec.topology_spread_constraints
    assert (absent.label_selector, empty.label_selector) == (None, LabelSelector())


def test_volumes_are_read_as_far_as_they_decide_where_a_pod_can_run() -> None:
    volumes = [
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-1"}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
    claim, disk, token, own = decode.decode(Pod, {"spec": {"volumes": volumes}}).spec.volumes
    assert claim.persistent_volume_claim is not None
    assert claim.persistent_volume_claim.claim_name == "data"
    assert disk.aws_elastic_block_store is not None
    assert disk.aws_elastic_block_store.volume_id == "vol-1"
    assert (token.name, token.ephemeral, own.ephemeral is not None) == ("token", None, True)

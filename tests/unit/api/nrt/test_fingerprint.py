"""The pod-set fingerprint: bit for bit upstream's, in any order, kept up to date pod by pod."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.nrt import fingerprint
from numalign.api.nrt.fingerprint import FingerprintDefect, FingerprintError, Method, Pod, PodSet

FIVE = [("ns1", "n1"), ("ns1", "n2"), ("ns2", "n1"), ("ns3", "n1"), ("ns3", "n2")]
KNOWN: dict[str, tuple[Sequence[Pod], str]] = {
    "no pods": ([], "pfp0v001ef46db3751d8e999"),
    "one pod": ([("default", "test-pod-0")], "pfp0v001fe53c4dbd2c5f4a0"),
    "another pod": ([("namespace1", "pod1")], "pfp0v0019e0420efb37746c6"),
    "five pods": (FIVE, "pfp0v001b92008c14168b3a6"),
    "five pods backwards": (FIVE[::-1], "pfp0v001b92008c14168b3a6"),
    "a pod twice counts twice": ([*FIVE, FIVE[0]], "pfp0v00115a3b9445068f193"),
    "three pods": ([("ns-1", "pod-1"), ("ns-2", "pod-2"), ("ns-2", "pod-3")], "pfp0v0013b68d754c0817837"),
    "four pods fill 32 bytes": (FIVE[:4], "pfp0v001d807b95b31183d31"),
    "ab/c is not a/bc": ([("ab", "c")], "pfp0v001f981c6658579a9de"),
    "a/bc is not ab/c": ([("a", "bc")], "pfp0v001226f74aca223c6a2"),
    "empty namespace": ([("", "x")], "pfp0v001eccb3ab08f12a28f"),
    "empty names": ([("", "")], "pfp0v001c47d32effa0690e8"),
    "letters outside ASCII": ([("ns", "pöd")], "pfp0v00162707b8427970c03"),
    "name of 63 letters": ([("openshift-ovn-kubernetes", "x" * 63)], "pfp0v001794a6784367bb017"),
}
REFUSED = {
    "short": ("x", FingerprintDefect.MALFORMED),
    "empty": ("", FingerprintDefect.MALFORMED),
    "short version": ("pfp0vX", FingerprintDefect.MALFORMED),
    "other prefix": ("wrngv001b92008c14168b3a6", FingerprintDefect.MALFORMED),
    "other version": ("pfp0v000b92008c14168b3a6", FingerprintDefect.INCOMPATIBLE_VERSION),
    "other pods": ("pfp0v001b92008c14168b3a7", FingerprintDefect.MISMATCH),
    "capital digits": ("pfp0v001B92008C14168B3A6", FingerprintDefect.MISMATCH),
    "cut off": ("pfp0v001b92008c1", FingerprintDefect.MISMATCH),
}
NAMES = st.text(max_size=8)
PODS = st.lists(st.tuples(NAMES, NAMES), max_size=12)


@pytest.mark.parametrize("pods, text", KNOWN.values(), ids=KNOWN)
def test_known_sets_have_the_fingerprints_of_upstream(pods: Sequence[Pod], text: str) -> None:
    assert fingerprint.of(pods) == text
    fingerprint.check(text, pods)


def test_a_pod_is_its_name_seeded_with_its_namespace() -> None:
    assert fingerprint.pod_hash("ns1", "n1") == 0x6FE7D8DA4B8352C3


@given(st.data())
def test_the_order_of_pods_does_not_matter(data: st.DataObject) -> None:
    pods = data.draw(PODS)
    assert fingerprint.of(data.draw(st.permutations(pods))) == fingerprint.of(pods)


@given(PODS, PODS)
def test_adding_and_removing_pods_one_by_one_gives_the_fingerprint_of_what_is_left(
    stay: list[Pod], go: list[Pod]
) -> None:
    pods = PodSet(go)
    for pod in stay:
        pods.add(*pod)
    for pod in go:
        pods.remove(*pod)
    assert pods.fingerprint() == fingerprint.of(stay)


def test_a_pod_that_is_not_in_the_set_cannot_be_removed() -> None:
    with pytest.raises(KeyError):
        PodSet(FIVE).remove("ns9", "n1")


@pytest.mark.parametrize("text, reason", REFUSED.values(), ids=REFUSED)
def test_a_fingerprint_of_something_else_is_refused_with_the_reason(text: str, reason: FingerprintDefect) -> None:
    with pytest.raises(FingerprintError) as refusal:
        fingerprint.check(text, FIVE)
    assert refusal.value.reason is reason


def test_parse_gives_the_hash() -> None:
    assert fingerprint.parse("pfp0v001ef46db3751d8e999") == 0xEF46DB3751D8E999


@pytest.mark.parametrize("text", ["pfp0v001ef46db3751d8e99", "pfp0v001EF46DB3751D8E999", "pfp0v001ef46db3751d8e999 "])
def test_parse_takes_only_sixteen_lower_case_digits(text: str) -> None:
    with pytest.raises(FingerprintError, match="16 lower-case hex digits"):
        fingerprint.parse(text)


def test_the_method_selects_the_pods_that_are_covered() -> None:
    pods = [(("a", "pinned"), True), (("b", "shared"), False)]
    assert fingerprint.included(pods, Method.ALL) == [("a", "pinned"), ("b", "shared")]
    assert fingerprint.included(pods, Method.EXCLUSIVE) == [("a", "pinned")]


@pytest.mark.parametrize("pods, text", KNOWN.values(), ids=KNOWN)
def test_hashes_of_pods_are_signed_like_the_pods(pods: Sequence[Pod], text: str) -> None:
    assert fingerprint.of_hashes(sorted(fingerprint.pod_hash(*pod) for pod in pods)) == text

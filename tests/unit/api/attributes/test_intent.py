"""What a pod's owner asks for: plain words, and a clear answer to a typing error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.attributes import intent as annotations
from numalign.api.attributes.intent import Intent
from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod

INTENTS = st.builds(
    Intent,
    scope=st.none() | st.sampled_from(["container", "pod"]),
    strictness=st.none() | st.sampled_from(["require", "prefer", "none"]),
)


def pod(**words: str) -> Pod:
    found = {f"numalign.io/{name}": word for name, word in words.items()}
    return Pod(metadata=ObjectMeta(name="web", namespace="shop", annotations=found))


def test_a_pod_without_annotations_has_no_intent() -> None:
    assert annotations.intent(pod()) == Intent()


def test_each_word_is_read_from_its_annotation() -> None:
    assert annotations.intent(pod(scope="pod", strictness="require")) == Intent(scope="pod", strictness="require")


@given(INTENTS)
def test_an_intent_is_read_back(intent: Intent) -> None:
    words = {name: word for name, word in structs.asdict(intent).items() if isinstance(word, str)}
    assert annotations.intent(pod(**words)) == intent


@pytest.mark.parametrize("name, word", [("scope", "Pod"), ("scope", ""), ("strictness", "required")])
def test_an_unknown_word_is_named_with_pod_annotation_and_choices(name: str, word: str) -> None:
    with pytest.raises(BadObject) as problem:
        annotations.intent(pod(**{name: word}))
    start = f'Pod shop/web, metadata.annotations[numalign.io/{name}]: "{word}" is not one of '
    assert str(problem.value).startswith(start)

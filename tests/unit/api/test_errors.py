"""A BadObject reads as one sentence for any content of the object."""

import pytest

from numalign.api import errors

SENTENCES = {
    "object and field": (("Pod", "default/web", "spec.nodeName", "is 3"), "Pod default/web, spec.nodeName: is 3"),
    "no name known": (("Pod", "", "spec.nodeName", "is 3"), "Pod, spec.nodeName: is 3"),
    "no field known": (("Node", "worker-7", "", "is not JSON"), "Node worker-7: is not JSON"),
    "neither": (("Node", "", "", "is not JSON"), "Node: is not JSON"),
}


@pytest.mark.parametrize("parts, sentence", SENTENCES.values(), ids=SENTENCES)
def test_it_reads_as_a_sentence(parts: tuple[str, str, str, str], sentence: str) -> None:
    assert str(errors.BadObject(*parts)) == sentence


def test_two_errors_with_the_same_words_are_two_errors() -> None:
    first, second = errors.BadObject("Pod", "a", "", "x"), errors.BadObject("Pod", "a", "", "x")
    assert first != second
    assert len({first, second}) == 2


ECHOES = {
    "text in quotes": ("2 cores", '"2 cores"'),
    "null": (None, "null"),
    "true, not 1": (True, "true"),
    "false, not 0": (False, "false"),
    "whole number": (-42, "-42"),
    "number of thousands of digits": (10**5000, "a number of more than 75 digits"),
    "fraction": (1.5, "1.5"),
    "not a number": (float("nan"), "nan"),
    "list": ([1, 2], "a list"),
    "object": ({"a": 1}, "an object"),
    "anything else by its type": (b"bytes", "a value of type bytes"),
}


@pytest.mark.parametrize("value, echo", ECHOES.values(), ids=ECHOES)
def test_values_are_shown_as_in_the_file(value: object, echo: str) -> None:
    assert errors.echo(value) == echo


def test_long_text_is_cut() -> None:
    assert errors.echo("x" * 10**6) == '"' + "x" * errors.ECHO_LIMIT + '..."'


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31mred", "a\u2028b", "\ud800", "\0"])
def test_no_text_breaks_out_of_its_line(text: str) -> None:
    assert errors.clipped(text).isprintable()
    assert errors.clipped(text).isascii()

"""Our own attributes: all facts both ways, newer ones skipped with a note, broken ones named."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from numalign.api.attributes import attributes, grammar
from numalign.api.attributes.attributes import NodeFacts, Unknown
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.errors import BadObject
from tests import topology_strategies as some

PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "attributes.md"
EXAMPLES = re.findall(r"^(numalign\.io/[a-z-]+): (v1;\S*)$", PAGE.read_text(), re.MULTILINE)


@given(some.FACTS)
@settings(max_examples=50)
def test_facts_are_read_back(facts: NodeFacts) -> None:
    guesses: list[Guess] = []
    assert attributes.read("n", attributes.write(facts), guesses) == facts
    assert guesses == []


def test_only_what_is_known_is_written() -> None:
    assert attributes.write(NodeFacts()) == {}
    assert attributes.write(NodeFacts(default_cpus=0b110)) == {"numalign.io/default-cpus": "v1;1-2"}


def test_an_empty_fact_is_not_an_absent_one() -> None:
    facts = NodeFacts(reserved_cpus=0, placements=(), cores=(), memory=(), devices=(), reserved_memory={})
    assert attributes.read("n", attributes.write(facts), []) == facts


@pytest.mark.parametrize("name", attributes.CODECS)
def test_a_newer_version_is_skipped_with_a_note(name: str) -> None:
    guesses: list[Guess] = []
    assert attributes.decode("n", name, "v2;whatever") == Unknown(2)
    assert attributes.read("n", {name: "v2;whatever"}, guesses) == NodeFacts()
    assert guesses == [Guess(GuessCode.FACT_UNKNOWN, f"attributes[{name}]", '"v2;whatever"')]


def test_an_attribute_of_a_newer_release_is_skipped_with_a_note() -> None:
    guesses: list[Guess] = []
    assert attributes.read("n", {"numalign.io/weather": "v1;rain"}, guesses) == NodeFacts()
    assert [guess.code for guess in guesses] == [GuessCode.FACT_UNKNOWN]


@pytest.mark.parametrize("name", attributes.CODECS)
def test_a_broken_value_is_a_bad_object_that_names_the_attribute(name: str) -> None:
    with pytest.raises(BadObject) as problem:
        attributes.decode("worker-7", name, "v1;\N{SNOWMAN}")
    assert str(problem.value).startswith(f"NodeResourceTopology worker-7, attributes[{name}]: ")


def test_one_broken_value_costs_no_other() -> None:
    guesses: list[Guess] = []
    values = {"numalign.io/reserved-cpus": "v1;0-1", "numalign.io/default-cpus": "all"}
    assert attributes.read("n", values, guesses) == NodeFacts(reserved_cpus=0b11)
    assert [(guess.code, guess.field) for guess in guesses] == [
        (GuessCode.FACT_MALFORMED, "attributes[numalign.io/default-cpus]")
    ]


@pytest.mark.parametrize("name, value", EXAMPLES)
def test_the_examples_on_the_page_are_what_would_be_written(name: str, value: str) -> None:
    fact = attributes.decode("n", name, value)
    assert grammar.tagged(attributes.CODECS[name].encode(fact)) == value


def test_the_page_has_an_example_of_every_attribute() -> None:
    assert {name for name, _ in EXAMPLES} == set(attributes.CODECS)

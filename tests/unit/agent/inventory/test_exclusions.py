"""What is left out, as the files of others say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.agent.inventory import exclusions
from numalign.agent.inventory.exclusions import Exclusions, PodPattern
from numalign.api.errors import BadObject

NFD = """
excludeList:
  '*': [memory]
  n1: [cpu]
  n2: [vendor/nic]
"""
RTE = """
resourceExclude:
  '*': [memory]
podExclude:
- namespacePattern: kube-*
  namePattern: '*'
kubelet:
  topologyManagerPolicy: restricted
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "exclude.yaml"
    file.write_text(text)
    return file


def test_nfds_file_names_resources_by_node(tmp_path: Path) -> None:
    assert exclusions.read(written(tmp_path, NFD), "n1") == Exclusions(frozenset({"memory", "cpu"}))


@pytest.mark.parametrize("key", ["excludelist", "ExcludeList", "RESOURCEEXCLUDE"])
def test_keys_count_in_any_case_as_they_do_for_the_programs(tmp_path: Path, key: str) -> None:
    assert exclusions.read(written(tmp_path, f"{key}: {{n1: [cpu]}}"), "n1") == Exclusions(frozenset({"cpu"}))


def test_rtes_file_names_resources_and_pods(tmp_path: Path) -> None:
    found = exclusions.read(written(tmp_path, RTE), "n1")
    assert found == Exclusions(frozenset({"memory"}), (PodPattern("kube-*", "*"),))


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "other: thing\n", "excludeList:\n", "excludeList: {n1: null}\n"], ids=repr
)
def test_a_file_without_exclusions_leaves_nothing_out(tmp_path: Path, text: str) -> None:
    assert exclusions.read(written(tmp_path, text), "n1") == exclusions.NONE


@pytest.mark.parametrize("text", ["excludeList: [cpu]", "podExclude: {a: b}", "excludeList: {", "[]"], ids=repr)
def test_a_file_that_cannot_be_understood_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadObject, match=r"exclude\.yaml"):
        exclusions.read(written(tmp_path, text), "n1")


def test_so_is_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadObject, match="no such file"):
        exclusions.read(tmp_path / "missing.yaml", "n1")


@pytest.mark.parametrize(
    "pattern, name, matches",
    [("web", "web", True), ("we?", "web", True), ("[^w]eb", "web", False), ("[", "web", False), ("*", "web", True)],
)
def test_patterns_are_those_of_go(pattern: str, name: str, matches: bool) -> None:
    assert Exclusions(pods=(PodPattern("*", pattern),)).has("default", name) is matches


def test_what_is_wrong_is_named_down_to_the_field(tmp_path: Path) -> None:
    with pytest.raises(BadObject, match=r"excludeList\[n1\]: expected a list, got a string") as refused:
        exclusions.read(written(tmp_path, "excludeList: {n1: cpu}"), "n1")
    assert refused.value.kind == "Exclusions"


def test_a_pattern_that_is_null_is_empty_and_matches_no_name(tmp_path: Path) -> None:
    found = exclusions.read(written(tmp_path, "podExclude: [{namespacePattern: null, namePattern: '*'}]"), "n1")
    assert not found.has("kube-system", "dns")

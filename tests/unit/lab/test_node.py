"""Nodes with real containers, of which each has its own /tmp and /run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from numalign.lab import launching, node


def test_folders_that_a_node_does_not_see_are_shown_to_it_by_their_outermost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "OF_NODE", {str(tmp_path): "755"})
    checkout, other = tmp_path / "checkout", tmp_path / "checkout-2"
    inner = checkout / ".venv"
    inner.mkdir(parents=True)
    other.mkdir()
    assert node.hidden([inner, Path("/usr/lib"), other, checkout, checkout]) == [checkout, other]


def test_folders_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    assert node.hidden([tmp_path / "cache"]) == []


def test_the_interpreter_and_the_package_are_among_the_folders_of_programs() -> None:
    folders = node.program_folders()
    assert Path(sys.prefix) in folders
    assert any(Path(node.__file__).is_relative_to(each) for each in folders)

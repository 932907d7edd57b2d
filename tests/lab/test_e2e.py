"""Kubernetes' own end-to-end tests on a lab: a few of them if e2e.test was built before, and all of them when asked."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from numalign.lab import build, preflight
from numalign.lab.e2e import run
from numalign.process import interpreter
from tests.lab.labs import Labs

PAGE = Path(__file__).parents[2] / "docs" / "compatibility" / "upstream-e2e.md"
FEW = r"SchedulerPredicates.*(NodeSelector|NodeAffinity).*if not matching"


def e2e(labs: Labs, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    labs.make_room(preflight.instances(run.NODES, run.NODES))
    command = [*interpreter.NUMALIGN, "lab", "e2e", "--name", f"e2e-{os.getpid()}", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def is_built() -> bool:
    (binary,) = build.chosen(["e2e.test"])
    return build.locate(binary, build.version_text(build.go())).exists()


def test_a_few_of_them_pass_with_numalign_as_the_only_scheduler(labs: Labs, tmp_path: Path) -> None:
    # Its build takes minutes, so that only `make test-e2e` and `make test-slow` do it; a pipeline need not have it.
    if not is_built():
        pytest.skip("needs e2e.test: numalign lab build e2e.test")
    ran = e2e(labs, tmp_path, "--scheduler", "numalign", "--focus", FEW, "-o", "json")
    assert ran.returncode == 0, ran.stderr
    outcomes = [(each["stock"], each["numalign"]) for each in json.loads(ran.stdout)["tests"]]
    assert outcomes == [("", "passed")] * 2


@pytest.mark.slow
def test_the_page_lists_what_all_of_them_say_with_both_schedulers(labs: Labs, tmp_path: Path) -> None:
    ran = e2e(labs, tmp_path, "--page", str(PAGE))
    assert ran.returncode == 0, (ran.stdout, ran.stderr)

"""The recorded histories beside the plugin itself: what it said then it says again."""

from typing import Any

import pytest

from numalign.oracle import sources
from numalign.oracle.harness import files
from numalign.oracle.harness.ask import OracleProgram
from tests.oracle import againstreal, recordings

EVERY = 20


def asked(history: dict[str, Any]) -> dict[str, Any]:
    """The history without its answers."""
    steps = [{key: value for key, value in step.items() if key != "answer"} for step in history["steps"]]
    return {**{key: value for key, value in history.items() if key != "init_error"}, "steps": steps}


@pytest.mark.built
def test_the_real_plugin_gives_the_recorded_answers() -> None:
    againstreal.require_go("the reference scheduler's plugin")
    recorded = [found.value for found in files.values(recordings.DATA / "reference-histories.xz")][::EVERY]
    with OracleProgram(sources.reference().program()) as program:
        answers = program.ask([("reference", asked(history)) for history in recorded])
    assert answers == recorded

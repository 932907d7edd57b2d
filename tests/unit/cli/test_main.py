"""The command as a whole: its help, its version, and how quickly it answers."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from numalign import __version__
from numalign.cli.main import app

COMMANDS = [[], ["demo"], ["kubelet", "admit"]]

QUICK = """
import sys
from numalign.cli.commands import demo, kubelet
sys.exit(any(name.startswith(("numalign.kubelet", "numpy", "yaml")) for name in sys.modules))
"""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_ends_with_an_example(words: list[str]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0
    assert f"Example: numalign {' '.join(words)}".strip() in " ".join(result.stdout.split())


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"numalign {__version__}\n"


def test_without_a_command_help_is_shown() -> None:
    assert "Usage: numalign" in CliRunner().invoke(app, []).output


def test_an_unknown_command_exits_with_2() -> None:
    assert CliRunner().invoke(app, ["nonsense"]).exit_code == 2


def test_the_model_is_loaded_by_those_who_need_it() -> None:
    assert subprocess.run([sys.executable, "-c", QUICK], check=False).returncode == 0


@pytest.mark.parametrize("words", [["scheduler", "run"], ["agent", "run"], ["device-plugin", "run"]], ids=" ".join)
def test_a_log_has_one_of_two_forms(words: list[str]) -> None:
    result = CliRunner().invoke(app, [*words, "--log-format", "xml"])
    assert (result.exit_code, "'text', 'json'" in result.stderr) == (2, True)

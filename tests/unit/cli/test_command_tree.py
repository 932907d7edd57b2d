"""The whole command tree: options of the same name mean the same, choices are listed, and every help has an example."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import typer.main
from typer.testing import CliRunner

from numalign.agent.inventory import inventory
from numalign.api.nrt import normalise
from numalign.cli import helptext
from numalign.cli.commands import agent
from numalign.cli.main import app

SAME_NAME_TWO_MEANINGS = {
    "--check": "doctor: the id of a check; deploy kubelet: a file to judge",
    "--nodes": "a number where a command makes nodes, a switch where it lists them",
    "--list": "plan replay names lists of pods; doctor lists its checks",
    "--dry-run": "deploy asks the server or not; agent gc has one kind only",
    "--policy": "deploy kubelet recommends, and never the policy none",
    "--certificate-authority": "extender config names a path on another host",
    "--scheduler": "scenario run knows its schedulers; cluster up --scenario may name any that users run",
    "--output": "lists have kubectl's wide and name, too",
    "--record": "a scheduler records into a folder, a scenario into a file",
    "--against": "some oracles have one component only",
}
RAW_TYPE = re.compile(r"<(?:str|int|float|path|int range|float range|integer|text|.*number)>")


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield from leaves(each, (*path, name))
    if not hasattr(command, "commands") and not command.hidden:
        yield " ".join(path), command


COMMANDS = dict(leaves(typer.main.get_command(app)))
EVERY = pytest.mark.parametrize("name", COMMANDS)


def options(name: str) -> Iterator[tuple[str, Any]]:
    for each in COMMANDS[name].params:
        if each.param_type_name == "option":
            yield next((opt for opt in each.opts if opt.startswith("--")), ""), each


def metavar(option: Any, command: Any) -> str:
    return str(option.make_metavar(ctx=typer.Context(command)))


def shown(name: str, width: int) -> str:
    ran = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": str(width)}, terminal_width=width)
    assert ran.exit_code == 0
    return ran.output


@EVERY
def test_every_help_has_an_example_that_names_the_command(name: str) -> None:
    assert re.match(rf"Example: (\S+=\S+ |source <\(|kubectl )?numalign {name}\b", COMMANDS[name].epilog or "")


@EVERY
def test_every_option_has_a_long_name_and_says_what_it_takes(name: str) -> None:
    for long, option in options(name):
        assert long, option.opts
        assert option.help, long
        assert not RAW_TYPE.search(metavar(option, COMMANDS[name])), f"{long} {metavar(option, COMMANDS[name])}"


def test_options_of_the_same_name_take_the_same() -> None:
    found = defaultdict[str, dict[str, str]](dict)
    for name in COMMANDS:
        for long, option in options(name):
            found[long][metavar(option, COMMANDS[name])] = name
    several = {long: each for long, each in found.items() if len(each) > 1}
    assert several.keys() == SAME_NAME_TWO_MEANINGS.keys(), several


def test_short_names_stand_for_one_long_name_in_all_commands() -> None:
    found = defaultdict[str, set[str]](set)
    for name in COMMANDS:
        for long, option in options(name):
            for short in option.opts:
                if not short.startswith("--"):
                    found[short].add(long)
    # As for kubectl and Helm: -f is the file that a command works on, and `logs -f` follows.
    assert found.pop("-f") == {"--file", "--values", "--follow"}
    assert {short: longs for short, longs in found.items() if len(longs) > 1} == {}


@EVERY
def test_lines_of_help_are_not_broken_in_the_middle_of_words(name: str) -> None:
    narrow, wide = shown(name, 80), shown(name, 1000)
    assert narrow.split() == wide.split()
    assert max(map(len, narrow.splitlines())) <= 100


def test_choices_of_the_agent_are_those_of_its_models() -> None:
    assert set(map(str, agent.ReportForm)) == set(get_args(inventory.Mode))
    assert set(map(str, agent.ReportVersion)) == set(get_args(normalise.Version))


SHELLS = {
    "bash": ({"COMP_WORDS": "numalign scheduler lo", "COMP_CWORD": "2"}, "log"),
    "zsh": ({"_TYPER_COMPLETE_ARGS": "numalign cluster up --policy r"}, "restricted"),
    "fish": (
        {"_TYPER_COMPLETE_ARGS": "numalign scen", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        "scenario",
    ),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_and_choices(shell: str) -> None:
    asked, expected = SHELLS[shell]
    script = CliRunner().invoke(app, ["completion", shell])
    assert (script.exit_code, helptext.COMPLETION_VARIABLE in script.output) == (0, True)
    environment = {**os.environ, **asked, helptext.COMPLETION_VARIABLE: f"complete_{shell}"}
    command = [sys.executable, "-c", "from numalign.cli.main import app; app(prog_name='numalign')"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert expected in ran.stdout


def test_the_version_is_printed_also_where_no_scheduler_answers() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        ran = CliRunner().invoke(app, ["version", "--server", server])
    assert (ran.exit_code, ran.stdout.startswith("client:    numalign ")) == (0, True)
    assert f"scheduler: not known: Scheduler {server}: cannot be reached" in ran.stderr


LIGHT = {
    "--version": "--version",
    "help": "--help",
    "version": "version --client",
    "clusters": "cluster status",
    "scenarios": "scenario list",
    "machines": "kubelet machines",
    "completion": "completion bash",
    "the scheduler's state": "scheduler state --server http://127.0.0.1:1",
    "the scheduler's log": "scheduler log show --server http://127.0.0.1:1",
}
HEAVY = (
    "numpy",
    "numba",
    "cryptography",
    "numalign.placement.engine",
    "numalign.scheduler.main",
    "numalign.kube.client",
)


@pytest.mark.parametrize("line", LIGHT.values(), ids=LIGHT)
def test_commands_that_only_read_import_nothing_heavy(line: str) -> None:
    """A limit on imports rather than on time: it fails on a loaded machine for the same reason as on an idle one."""
    code = (
        "import sys\n"
        "from numalign.cli.main import app\n"
        "try:\n    app(sys.argv[1:], prog_name='numalign')\n"
        "finally:\n    print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *line.split()], capture_output=True, text=True, timeout=120, check=False
    )
    loaded = ran.stderr.splitlines()[-1].split()
    assert "numalign.cli.main" in loaded
    assert [each for each in loaded if each in HEAVY] == []


@pytest.mark.parametrize(
    "words, expected",
    [(["topolo"], "topology"), (["topology", "-o", "na"], "name"), (["explain", ""], "shape"), ([], "why")],
    ids=" ".join,
)
def test_kubectl_completes_what_comes_after_numalign(words: list[str], expected: str) -> None:
    command = [sys.executable, "-c", "from numalign.cli.main import complete; complete()", *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    *found, last = ran.stdout.splitlines()
    assert (expected in found, last) == (True, ":0")
    assert all(each.startswith(words[-1] if words else "") for each in found)

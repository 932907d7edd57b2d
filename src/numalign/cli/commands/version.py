"""`numalign version` and `numalign completion`: what is installed, and what a shell needs to complete commands.

`version` also asks the scheduler that `numalign scheduler state` would ask. The scripts of `completion` are typer's:
the shell calls numalign itself for the words that may come next."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from msgspec import Struct

from numalign import __version__
from numalign.api.errors import BadObject
from numalign.cli import helptext, output, sources
from numalign.cli.options import Output, bundled
from numalign.cli.output import Format
from numalign.cli.sources import SchedulerPages

app = typer.Typer()
PATH = "/version"
PROGRAM = "numalign"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Versions(Struct, frozen=True, omit_defaults=True):
    client: str
    scheduler: str = ""
    server: str = ""
    """Where the scheduler serves its pages."""
    problem: str = ""
    """Why the scheduler's version is not known."""


@app.command("version", epilog="Example: numalign version -o json")
@bundled
def version(
    pages: SchedulerPages,
    client: Annotated[bool, typer.Option("--client", help="Do not ask a scheduler.")] = False,
    fmt: Output = Format.TABLE,
) -> None:
    """Print the version of numalign, and that of the scheduler where one can be reached. Exit code: 0."""
    found = Versions(__version__) if client else _asked(pages)
    if fmt is not Format.TABLE:
        return output.show(output.structured(found, fmt))
    lines = [f"client:    numalign {found.client}"]
    if found.scheduler:
        lines.append(f"scheduler: numalign {found.scheduler}, at {found.server}")
    output.show("\n".join(lines))
    if found.problem:
        output.say(f"scheduler: not known: {output.printable(found.problem)}")


@app.command("completion", epilog="Example: source <(numalign completion bash)")
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the completion script of a shell.

    bash: source <(numalign completion bash), also in ~/.bashrc. zsh: source <(numalign completion zsh), after compinit.
    fish: numalign completion fish > ~/.config/fish/completions/numalign.fish."""
    output.show(helptext.completion_script(PROGRAM, shell.value))


def _asked(pages: SchedulerPages) -> Versions:
    import msgspec

    try:
        reached = pages.found()
        answer = msgspec.json.decode(sources.fetch(reached.server, PATH, reached), type=dict[str, str])
    except BadObject as problem:
        return Versions(__version__, problem=str(problem))
    except msgspec.MsgspecError:
        return Versions(__version__, problem=f"{reached.server} is not a numalign scheduler")
    return Versions(__version__, answer.get("version", "unknown"), reached.server)

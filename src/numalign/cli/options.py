"""The options that commands share, and a way for a command to take many options as one struct.

Commands decorate themselves with `bundled`. Each parameter whose type is a msgspec Struct stands for the options that
the fields of the struct declare. Typer sees the options; the command gets the struct. This module parses nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer
from msgspec import NODEFAULT, Struct, structs

from numalign.cli.output import Format, ListFormat, LogForm


class Policy(StrEnum):
    """What `--policy` accepts; a test holds it against the kubelet model."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE = "single-numa-node"


class Scope(StrEnum):
    """What `--scope` accepts; a test holds it against the kubelet model."""

    CONTAINER = "container"
    POD = "pod"


class TraceZones(StrEnum):
    """NUMA zones that larger machines of a trace are taken to have."""

    ONE = "1"
    TWO = "2"
    FOUR = "4"


class RequestReading(StrEnum):
    """How the requests of a trace are read: see `plan.replay.Requests`."""

    LISTED = "listed"
    GUARANTEED = "guaranteed"


Machine = Annotated[
    str,
    typer.Option(metavar="NAME|FILE", help="A preset or a machine file; `numalign kubelet machines` lists presets."),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]
ListOutput = Annotated[ListFormat, typer.Option("--output", "-o", help="Output format.")]
Interval = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="Time between two looks of --watch.")
]
INTERVAL = 2.0
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Go on, and print what changes.")]
Kubeconfig = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="The kubeconfig of the cluster. Default: KUBECONFIG, or the service account of the pod."
    ),
]
BindAddress = Annotated[str, typer.Option(metavar="ADDRESS", help="Address of health and metrics.")]
Port = Annotated[
    int, typer.Option(metavar="PORT", min=0, max=65535, help="Port of health and metrics; 0: do not serve.")
]
Verbosity = Annotated[
    int, typer.Option("--verbosity", "-v", metavar="N", min=0, max=9999, help="Log level; 4 and above is debug.")
]
LogFormat = Annotated[LogForm, typer.Option("--log-format", help="Log format.")]


def bundled(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every bundle replaced by its options."""
    hints = get_type_hints(command, include_extras=True)
    bundles: dict[str, type[Struct]] = {}
    parameters: list[Parameter] = []
    for name, each in inspect.signature(command).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Struct):
            bundles[name] = hint
            parameters += _options(hint)
        else:
            parameters.append(each.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        found = {
            name: kind(**{each: given.pop(each) for each in kind.__struct_fields__}) for name, kind in bundles.items()
        }
        command(**given, **found)

    run.__annotations__ = {}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _options(bundle: type[Struct]) -> list[Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    defaults = {
        each.name: each.default if each.default_factory is NODEFAULT else each.default_factory()
        for each in structs.fields(bundle)
    }
    # What a bundle adds comes before what it inherits.
    names = [name for kind in bundle.__mro__ for name in inspect.get_annotations(kind) if name in defaults]
    return [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if defaults[name] is NODEFAULT else defaults[name],
            annotation=hints[name],
        )
        for name in names
    ]

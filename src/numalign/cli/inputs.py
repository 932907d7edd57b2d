"""Reads the machine and the kubelet configuration that a command is given, and starts a kubelet model.

Commands that model a node call it. A machine is the name of a preset or a file; a kubelet configuration is a file or
the kubelet's defaults. Errors are BadObject, with a text to print as it is."""

from __future__ import annotations

import os

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import fields
from numalign.cli import fileio
from numalign.kubelet import configuration, refusals, start, versions
from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.versions import Minor

DEFAULTS = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}


class Started(Struct, frozen=True):
    """A kubelet ready to admit, and what the user should know about it."""

    kubelet: Kubelet
    warnings: tuple[str, ...] = ()


def kubelet(machine_name: str, config: str | None, version: str | None) -> Started:
    """Start a kubelet of this version on this machine with this configuration."""
    wanted = minor(version)
    on = machine(machine_name)
    try:
        started = start.start(on, settings(config, on, wanted))
    except (refusals.StartRefusal, refusals.Undecided) as refusal:
        name = fileio.shown(config or "the defaults")
        raise errors.BadObject(configuration.KIND, name, "", f"the kubelet would not start: {refusal}") from None
    known = versions.clamped(wanted)
    if known == wanted:
        return Started(started)
    warning = f"kubelet {wanted} is not known here ({versions.OLDEST} to {versions.NEWEST} are); answering as {known}"
    return Started(started, (warning,))


def machine(name_or_path: str) -> Machine:
    """The preset of this name, else the machine that the file describes."""
    if name_or_path in presets.names():
        return presets.machine(name_or_path)
    if name_or_path != fileio.STDIN and not os.path.exists(name_or_path):
        known = fields.suggestion(name_or_path, presets.names())
        name = fileio.shown(name_or_path)
        raise errors.BadObject("Machine", name, "", f"no such preset and no such file; {known}")
    document = fileio.only(name_or_path)
    return machinefile.read(document.value, document.place)


def settings(path: str | None, machine: Machine, minor: Minor) -> Settings:
    """The settings that a kubelet of this minor takes from the file; its defaults without one."""
    if path is None:
        return configuration.read(DEFAULTS, "the defaults", machine, minor)
    document = fileio.only(path)
    return configuration.read(document.value, document.place, machine, minor)


def minor(text: str | None) -> Minor:
    """The minor that the text names, known here or not; without a text the newest one known."""
    if text is None:
        return versions.NEWEST
    found = versions.parse(text)
    if found is None:
        why = f"{errors.echo(text)} is not a Kubernetes version; write one like {versions.NEWEST}"
        raise errors.BadObject("Option", "--kubelet-version", "", why)
    return found

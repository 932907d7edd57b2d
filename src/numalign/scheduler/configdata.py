"""A configuration in effect as plain data, and back: for the configz page, and for dumps.

Unlike the file it came from it has everything in it, defaults and the order of plugins included, so that it means the
same to any version that knows the names."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from numalign.api.decode import decode
from numalign.api.decode import structs as wire
from numalign.api.decode.structs import Wire
from numalign.api.errors import BadObject
from numalign.api.schedulerconfig import configuration
from numalign.api.schedulerconfig.configuration import Configuration, Profile
from numalign.scheduler import settings

ARGS: Final = "args"


def plain(config: Configuration) -> dict[str, Any]:
    told: dict[str, Any] = _plain(config)
    return told


def again(told: dict[str, Any], source: str) -> Configuration:
    """BadObject where it is not what `plain` gives."""
    try:
        profiles = [each | {ARGS: {}} for each in told["profiles"]]
        config = msgspec.convert(told | {"profiles": profiles}, Configuration)
        pairs = zip(config.profiles, told["profiles"], strict=True)
        return structs.replace(config, profiles=tuple(_with_args(profile, each[ARGS]) for profile, each in pairs))
    except KeyError as missing:
        raise BadObject(configuration.KIND, source, f"configuration.{missing.args[0]}", "is missing") from None
    except decode.UNREADABLE as problem:
        raise BadObject(configuration.KIND, source, "configuration", f"cannot be read: {problem}") from None


def _with_args(profile: Profile, told: dict[str, Any]) -> Profile:
    usual = {name: settings.defaults(name) for name in told}
    read: dict[str, Wire] = {
        name: msgspec.convert(told[name], type(default), dec_hook=wire.decoded)
        for name, default in usual.items()
        if default is not None
    }
    return structs.replace(profile, args=read)


def _plain(thing: Any) -> Any:
    """With defaults: structs of plugins leave them out by themselves."""
    if isinstance(thing, Struct):
        return {field.encode_name: _plain(getattr(thing, field.name)) for field in structs.fields(thing)}
    if isinstance(thing, dict):
        return {str(name): _plain(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_plain(each) for each in thing]
    return msgspec.to_builtins(thing, enc_hook=wire.encodable)

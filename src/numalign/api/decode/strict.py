"""Values of a file into structs, with nothing in them that nobody reads.

`decode` tolerates unknown fields, as readers of API objects must; whoever reads what a person wrote down for us alone
wants a misspelt name refused. `read` is for that: fields that the struct does not have come out as a BadObject with
their path, and so does everything that `decode` finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import decode, fields
from numalign.api.decode.fields import Field
from numalign.api.decode.structs import Wire

T = TypeVar("T", bound=Wire)


def read(field: Field, kind: type[T]) -> T:
    """The field's mapping as a struct; all defaults where the file does not have it."""
    if not field.given:
        return kind()
    refuse_unknown(field, kind)
    with under(field):
        return decode.decode(kind, fields.named(field))


def refuse_unknown(field: Field, kind: Any) -> None:
    """Fields that a value of this type does not have, however deep."""
    arguments = [each for each in get_args(kind) if each is not NoneType]
    if not field.given:
        return
    if get_origin(kind) in (Union, UnionType):
        refuse_unknown(field, arguments[0])
    elif get_origin(kind) is tuple:
        for item in fields.items(field):
            refuse_unknown(item, arguments[0])
    elif isinstance(kind, type) and issubclass(kind, Struct):
        types = {each.encode_name: each.type for each in structs.fields(kind)}
        fields.only(field, types)
        for name, part in types.items():
            refuse_unknown(field.at(name), part)


@contextmanager
def under(field: Field) -> Iterator[None]:
    """What is wrong inside is wrong at this place of this file."""
    try:
        yield
    except errors.BadObject as problem:
        raise errors.BadObject(field.kind, field.source, field.path_to(problem.field), problem.why) from None

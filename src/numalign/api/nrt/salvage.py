"""As much of a document as fits a struct.

`nrtwire` turns to it when a report does not decode as a whole: what fits is kept, and of the rest only the smallest
part that does not fit is left out and noted, with its path. Never raises, whatever the document holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import msgspec

from numalign.api import errors
from numalign.api.nrt.repairs import Guess, GuessCode

T = TypeVar("T", bound=msgspec.Struct)

NOTHING: Final = object()
MISFIT: Final = (ValueError, TypeError, RecursionError, OverflowError)


def struct(document: Mapping[str, Any], kind: type[T], path: str = "") -> tuple[T, list[Guess]]:
    """A struct of this kind with every field that could be read, and a note for each part that could not."""
    dropped: list[Guess] = []
    return _struct(document, kind, path, dropped), dropped


def _fitted(value: Any, wanted: Any, path: str, dropped: list[Guess]) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except MISFIT:
        return _pieces(value, _without_none(wanted), path, dropped)


def _pieces(value: Any, wanted: Any, path: str, dropped: list[Guess]) -> Any:
    if isinstance(value, Mapping) and isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return _struct(value, wanted, path, dropped)
    if isinstance(value, list) and get_origin(wanted) is tuple:
        return tuple(_items(value, get_args(wanted)[0], path, dropped))
    if isinstance(value, Mapping) and get_origin(wanted) is dict:
        kind = get_args(wanted)[1]
        texts = {key: item for key, item in value.items() if isinstance(key, str)}
        pairs = ((key, _fitted(item, kind, f"{path}[{errors.clipped(key)}]", dropped)) for key, item in texts.items())
        return {key: item for key, item in pairs if item is not NOTHING}
    dropped.append(Guess(GuessCode.UNREADABLE, path, errors.echo(value)))
    return NOTHING


def _items(values: Sequence[Any], kind: Any, path: str, dropped: list[Guess]) -> Iterator[Any]:
    for place, value in enumerate(values):
        item = _fitted(value, kind, f"{path}[{place}]", dropped)
        if item is not NOTHING:
            yield item
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            # An empty one in its place, so that the paths of later notes still count as the publisher does.
            yield kind()


def _struct(document: Mapping[str, Any], kind: type[T], path: str, dropped: list[Guess]) -> T:
    found = {}
    for field in msgspec.structs.fields(kind):
        # A null is an absent field, as everywhere in Kubernetes.
        if document.get(field.encode_name) is not None:
            where = f"{path}.{field.encode_name}" if path else field.encode_name
            found[field.name] = _fitted(document[field.encode_name], field.type, where, dropped)
    return kind(**{name: value for name, value in found.items() if value is not NOTHING})


def _without_none(wanted: Any) -> Any:
    if get_origin(wanted) in (Union, UnionType):
        others = [kind for kind in get_args(wanted) if kind is not NoneType]
        return others[0] if len(others) == 1 else wanted
    return wanted

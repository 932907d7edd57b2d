"""Lists of attributes of reports and zones: lookup, change and merge.

The rules are those of the upstream helper (exporter spec 1.12): the first entry of a name counts, the order is kept,
and lists are never changed in place. The agent merges its attributes into objects that other publishers write, too."""

from collections.abc import Collection, Iterable, Sequence

from numalign.api import errors
from numalign.api.attributes.repairs import Guess, GuessCode
from numalign.api.nrt.wire import Attribute


def get(attributes: Iterable[Attribute], name: str) -> str | None:
    return next((attribute.value for attribute in attributes if attribute.name == name), None)


def insert(attributes: Sequence[Attribute], new: Attribute) -> list[Attribute]:
    """Replaces the attribute of this name or appends a new one; an attribute without a name changes nothing."""
    return merge(attributes, [new]) if new.name else list(attributes)


def merge(existing: Sequence[Attribute], updated: Iterable[Attribute]) -> list[Attribute]:
    merged = list(existing)
    places: dict[str, int] = {}
    for place, attribute in enumerate(existing):
        places.setdefault(attribute.name, place)
    for attribute in updated:
        if attribute.name in places:
            merged[places[attribute.name]] = attribute
        else:
            merged.append(attribute)
    return merged


def delete_all(attributes: Iterable[Attribute], name: str) -> list[Attribute]:
    return [attribute for attribute in attributes if attribute.name != name]


def by_name(
    attributes: Iterable[Attribute], where: str, guesses: list[Guess], *, apart_from: Collection[str] = ()
) -> dict[str, str]:
    """The attributes by name, ascending. Each repeated or unnamed one is skipped and noted."""
    found: dict[str, str] = {}
    for place, attribute in enumerate(attributes):
        name, value = attribute.name, attribute.value
        if name in apart_from:
            continue
        if name and name not in found:
            found[name] = value
            continue
        path, written = f"{where}[{place}]", errors.echo(value)
        if name:
            guesses.append(Guess(GuessCode.ATTRIBUTE_DUPLICATE, path, written, errors.echo(found[name])))
        else:
            guesses.append(Guess(GuessCode.ATTRIBUTE_UNNAMED, path, written))
    return dict(sorted(found.items()))

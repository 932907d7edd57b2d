"""Lists objects: selection, resourceVersion, and pagination with continue tokens.

`Api`, the HTTP layer and watches call `list_objects`. A continue token holds the version of the first page and the
start key of the next; the watch cache lets later pages show that same version. If the cache no longer reaches it, the
client gets 410 with a token that continues with the current objects."""

import base64
import binascii
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from numalign.simulator.apiserver.schemas import gotext
from numalign.simulator.apiserver.storage import errors, fieldselectors, labelselectors
from numalign.simulator.apiserver.storage.errors import StatusCause, StatusError
from numalign.simulator.apiserver.storage.fieldselectors import NAME, NAMESPACE, NODE, Terms
from numalign.simulator.apiserver.storage.labelselectors import Requirements
from numalign.simulator.apiserver.storage.resources import PODS, Resource
from numalign.simulator.apiserver.storage.store import Collection, Store, StoredObject

TOKEN_VERSION: Final = "meta.k8s.io/v1"
CURRENT: Final = -1
"""In a token: continue with the current objects, consistent with earlier pages or not."""
TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class SelectionPredicate(Struct, frozen=True):
    """Selects objects of a resource; parsed once, evaluated for every object."""

    namespace: str = ""
    labels: Requirements = ()
    fields: Terms = ()

    @property
    def is_narrow(self) -> bool:
        """Whether it selects less than a whole namespace."""
        return bool(self.labels or self.fields)

    def holds(self, entry: StoredObject) -> bool:
        if self.namespace and entry.namespace != self.namespace:
            return False
        if self.labels and not labelselectors.matches(self.labels, entry.labels):
            return False
        return not self.fields or all(self._has(entry, term) for term in self.fields)

    def _has(self, entry: StoredObject, term: fieldselectors.FieldTerm) -> bool:
        if term.field == NAME:
            return (entry.name == term.value) == term.equal
        if term.field == NAMESPACE:
            return (entry.namespace == term.value) == term.equal
        return fieldselectors.matches((term,), entry.fields or {})


def predicate(resource: Resource, namespace: str = "", labels: str = "", fields: str = "") -> SelectionPredicate:
    """Raises StatusError 400 for invalid selectors."""
    return SelectionPredicate(
        namespace,
        labelselectors.parse(labels) if labels else (),
        fieldselectors.parse(fields, resource) if fields else (),
    )


class ListOptions(Struct, frozen=True):
    """Page size, continue token, and the version to list."""

    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""


EVERYTHING: Final = ListOptions()


class ListPage(Struct, frozen=True):
    entries: list[StoredObject]
    version: int
    token: str = ""
    remaining: int = 0
    """How many objects follow; 0 also if the server does not say, as with selectors."""


class ContinueToken(Struct, frozen=True):
    v: str
    rv: int
    start: str


def list_objects(
    store: Store, resource: Resource, chosen: SelectionPredicate, asked: ListOptions = EVERYTHING
) -> ListPage:
    collection = store.collection(resource)
    if asked.token:
        return _continued(store, collection, chosen, asked)
    if asked.match == "Exact" and asked.version:
        version = known_version(store, asked.version)
        if not collection.watch_cache.reaches(version):
            raise errors.gone("The resourceVersion for the provided list is too old.")
        return _page(chosen, collection.as_of(version), version, asked.limit)
    if asked.version:
        known_version(store, asked.version)
    found = [entry for entry in _candidates(collection, chosen) if chosen.holds(entry)]
    return _page(chosen, found, store.version, asked.limit)


def known_version(store: Store, text: str) -> int:
    """The version; raises StatusError if it is not a number or lies in the future."""
    if not text.isdecimal():
        why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise errors.bad_request(f"invalid resource version: resourceVersion: {why}")
    version = int(text)
    if version > store.version:
        raise version_too_large(version, store.version)
    return version


def version_too_large(version: int, current: int) -> StatusError:
    cause = StatusCause("", "ResourceVersionTooLarge", "Too large resource version")
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": [cause.tree()], "retryAfterSeconds": 1})


def _candidates(collection: Collection, chosen: SelectionPredicate) -> Iterable[StoredObject]:
    node = fieldselectors.required_value(chosen.fields, NODE) if collection.resource is PODS else ""
    if node:
        return collection.on_node(node)
    name = fieldselectors.required_value(chosen.fields, NAME)
    if name and (chosen.namespace or not collection.resource.namespaced):
        found = collection.entries.get(f"{chosen.namespace}/{name}")
        return [found] if found is not None else []
    return collection.within(chosen.namespace)


def _continued(store: Store, collection: Collection, chosen: SelectionPredicate, asked: ListOptions) -> ListPage:
    token = decode_token(asked.token)
    if asked.version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    start = f"{chosen.namespace}{token.start}" if chosen.namespace else token.start
    version = store.version if token.rv == CURRENT else token.rv
    if version > store.version:
        raise version_too_large(version, store.version)
    if not collection.watch_cache.reaches(version):
        raise errors.gone(TOO_OLD, {"continue": encode_token(CURRENT, token.start)})
    rest = [entry for entry in collection.as_of(version) if entry.key >= start]
    return _page(chosen, rest, version, asked.limit)


def _page(chosen: SelectionPredicate, entries: list[StoredObject], version: int, limit: int) -> ListPage:
    found = [entry for entry in entries if chosen.holds(entry)]
    if limit <= 0 or len(found) <= limit:
        return ListPage(found, version)
    start = found[limit - 1].key.removeprefix(chosen.namespace) + "\0"
    remaining = 0 if chosen.is_narrow else len(found) - limit
    return ListPage(found[:limit], version, encode_token(version, start), remaining)


def encode_token(version: int, start: str) -> str:
    written = msgspec.json.encode(ContinueToken(TOKEN_VERSION, version, start))
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def decode_token(text: str) -> ContinueToken:
    """Raises StatusError 400 for a token that the server did not issue."""
    if "=" in text:
        raise _bad_token(f"illegal base64 data at input byte {text.index('=')}")
    try:
        padded = text + "=" * (-len(text) % 4)
        written = base64.b64decode(padded, altchars="-_", validate=True)
        token = msgspec.json.decode(written, type=ContinueToken)
    except msgspec.ValidationError as problem:
        raise _bad_token(str(problem)) from None
    except msgspec.DecodeError:
        raise _bad_token(gotext.json_error(written)) from None
    except (binascii.Error, ValueError) as problem:
        raise _bad_token(str(problem)) from None
    if token.v != TOKEN_VERSION:
        raise _bad_token(f"server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {TOKEN_VERSION})")
    if not token.start:
        raise _bad_token(f"encoded start key empty (version {TOKEN_VERSION})")
    if ".." in token.start:
        raise _bad_token(token.start)
    return token


def _bad_token(why: str) -> StatusError:
    return errors.bad_request(f"invalid continue token: continue key is not valid: {why}")

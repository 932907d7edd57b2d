"""Creates objects: name, uid, creation time and generation, then admission, then the store.

`Api` and the HTTP layer call `create_object`; so do a PUT and an apply of an object that does not exist. The store
keeps the tree that is passed."""

import random
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import fielderrors
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import EVENTS, Resource
from numalign.simulator.apiserver.storage.store import StoredObject, encode_object
from numalign.simulator.apiserver.verbs import conversion, strategy
from numalign.simulator.apiserver.verbs.state import PLAIN, ServerState, WriteOptions
from numalign.simulator.trees import Tree

# Without vowels and similar characters, to avoid words and misreadings.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
MAX_BASE_LENGTH: Final = 63 - SUFFIX_LENGTH
ATTEMPTS: Final = 8
# The server sets these; values from the client are ignored.
SERVER_SET: Final = (
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "uid",
    "generation",
)


def generated_name(base: str, chance: random.Random) -> str:
    return base[:MAX_BASE_LENGTH] + "".join(chance.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))


def new_uid(chance: random.Random) -> str:
    """A random UUID of version 4, formatted directly: every create needs one, and uuid.UUID is slower."""
    digits = f"{chance.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def create_object(state: ServerState, resource: Resource, tree: Tree, options: WriteOptions = PLAIN) -> StoredObject:
    if tree.get("metadata", {}).get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    if resource.group_resource == EVENTS.group_resource:
        _forget_old_events(state)
    tree = conversion.to_storage(resource, tree)
    tree["metadata"] = _metadata(state, resource, tree["metadata"])
    if strategy.has_status(resource) and resource.group_resource not in strategy.STATUS_ON_CREATE:
        tree.pop("status", None)
    tree = strategy.admitted(state, resource, tree, None)
    if "generateName" in tree["metadata"]:
        _settle_name(state, resource, tree)
    name, namespace = tree["metadata"]["name"], tree["metadata"].get("namespace", "")
    if not name:
        raise errors.invalid(resource, "", [fielderrors.NO_NAME])
    there = state.store.entry(resource, name, namespace)
    if there is not None:
        leaving = "deletionTimestamp" in trees.decoded(there.data)["metadata"]
        raise errors.already_exists(resource, name, leaving=leaving)
    if options.dry_run:
        del tree["metadata"]["resourceVersion"]
        return encode_object(resource, tree, 0)
    return state.store.commit(resource, tree, None, None)


def _metadata(state: ServerState, resource: Resource, given: Tree) -> Tree:
    """The metadata in the order in which the real server writes it."""
    name, base = given.get("name"), given.get("generateName")
    made: Tree = {"name": name or (generated_name(base, state.chance) if base else "")}
    if base:
        made["generateName"] = base
    if resource.namespaced:
        made["namespace"] = given.get("namespace") or "default"
    made |= {"uid": new_uid(state.chance), "resourceVersion": ""}
    if resource.generations or resource.custom:
        made["generation"] = 1
    made["creationTimestamp"] = state.clock.rfc3339()
    for key, value in given.items():
        if key not in made and key not in SERVER_SET and value not in (None, {}, []):
            made[key] = value
    if not resource.namespaced:
        made.pop("namespace", None)
    return made


def _forget_old_events(state: ServerState) -> None:
    entries = state.store.collection(EVENTS).entries
    for key in state.expiry.due():
        entry = entries[key]
        state.store.remove(EVENTS, trees.decoded(entry.data), entry, trees.decoded(entry.data))


def _settle_name(state: ServerState, resource: Resource, tree: Tree) -> None:
    """Draws a generated name again, a few times, if it is already taken."""
    metadata = tree["metadata"]
    for _ in range(ATTEMPTS):
        if state.store.entry(resource, metadata["name"], metadata.get("namespace", "")) is None:
            return
        metadata["name"] = generated_name(metadata["generateName"], state.chance)

"""JSON patch (RFC 6902) as the real server applies it.

The patch verb calls `applied` with the decoded operations. The server is more lenient than the standard: replace of a
missing field adds it, test for null succeeds on a missing field, and an index may count from the end. Every operation
that does not apply is rejected with the same message."""

from collections.abc import Callable
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import typed
from numalign.simulator.apiserver.patches.errors import REJECTED, BadPatch
from numalign.simulator.trees import Tree

UNFIT: Final = 422
APPEND: Final = "-"
MOST: Final = 10_000
MOST_COPIED: Final = 3 << 20
"""Bytes that all copies of a patch may have together, as on the server."""
Container = dict[str, Any] | list[Any]


def applied(tree: Tree, operations: list[Tree]) -> Tree:
    if len(operations) > MOST:
        raise BadPatch(f"The allowed maximum operations in a JSON patch is {MOST}, got {len(operations)}", 413)
    document: Any = trees.copied(tree)
    room = MOST_COPIED
    for operation in operations:
        if operation.get("op") == "copy":
            # A few copies of a value into itself would make it endless.
            room -= len(trees.encoded(_get({"": document}, _source(operation))))
        if room < 0:
            raise BadPatch(REJECTED, UNFIT)
        document = _step(document, operation)
    if not isinstance(document, dict):
        raise BadPatch(REJECTED, UNFIT)
    return document


def _step(document: Any, operation: Tree) -> Any:
    operate = OPERATIONS.get(operation.get("op", ""))
    path = operation.get("path")
    if operate is None or not isinstance(path, str):
        raise BadPatch(REJECTED, UNFIT)
    # The document is wrapped in an object, so that an empty path needs no special case.
    wrapped = {"": document}
    operate(wrapped, path, operation)
    return wrapped.get("")


def _add(document: Tree, path: str, operation: Tree) -> None:
    _put(document, path, trees.copied(operation.get("value")))


def _remove(document: Tree, path: str, operation: Tree) -> None:
    container, key = _place(document, path)
    if isinstance(container, dict):
        if key not in container:
            raise BadPatch(REJECTED, UNFIT)
        del container[key]
    else:
        del container[_index(key, len(container))]


def _replace(document: Tree, path: str, operation: Tree) -> None:
    container, key = _place(document, path)
    value = trees.copied(operation.get("value"))
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_index(key, len(container))] = value


def _test(document: Tree, path: str, operation: Tree) -> None:
    if not typed.same(_get(document, path), operation.get("value")):
        raise BadPatch(REJECTED, UNFIT)


def _copy(document: Tree, path: str, operation: Tree) -> None:
    _put(document, path, trees.copied(_get(document, _source(operation))))


def _move(document: Tree, path: str, operation: Tree) -> None:
    source = _source(operation)
    value = _get(document, source)
    _remove(document, source, operation)
    _put(document, path, value)


def _source(operation: Tree) -> str:
    source = operation.get("from")
    if not isinstance(source, str):
        raise BadPatch(REJECTED, UNFIT)
    return source


def _put(document: Tree, path: str, value: Any) -> None:
    container, key = _place(document, path)
    if isinstance(container, dict):
        container[key] = value
    elif key == APPEND:
        container.append(value)
    else:
        container.insert(_index(key, len(container) + 1), value)


def _get(document: Tree, path: str) -> Any:
    container, key = _place(document, path)
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


def _place(document: Tree, path: str) -> tuple[Container, str]:
    """The container in which the last step of a path is taken, and that step."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    # A path without a leading slash loses its first step, as on the server.
    steps[0] = ""
    at: Any = document
    for step in steps[:-1]:
        at = at.get(step) if isinstance(at, dict) else _item(at, step)
    if not isinstance(at, dict | list):
        raise BadPatch(REJECTED, UNFIT)
    return at, steps[-1]


def _item(container: Any, step: str) -> Any:
    if not isinstance(container, list):
        raise BadPatch(REJECTED, UNFIT)
    return container[_index(step, len(container))]


def _index(step: str, length: int) -> int:
    try:
        index = int(step)
    except ValueError:
        raise BadPatch(REJECTED, UNFIT) from None
    if not -length <= index < length:
        raise BadPatch(REJECTED, UNFIT)
    return index % length


OPERATIONS: Final[dict[str, Callable[[Tree, str, Tree], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
    "copy": _copy,
    "move": _move,
}

"""Strategic merge patch: merges lists by their keys, and obeys directives inside the patch.

The patch verb calls `applied` for built-in kinds; custom resources do not support this patch. `$patch` replaces or
deletes a map or list item, `$retainKeys` removes all other keys; `$deleteFromPrimitiveList/x` and `$setElementOrder/x`
apply to the list x beside them.

In a merged list the items of the patch keep the order of the patch, other items keep that of the live list, and the two
are interleaved by their positions in the live list."""

from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.patches.errors import SERVER_ERROR, BadPatch
from numalign.simulator.apiserver.schemas import builtin, gotext, typedefs
from numalign.simulator.apiserver.schemas.typedefs import TypeDef
from numalign.simulator.apiserver.storage.resources import GroupVersionKind
from numalign.simulator.trees import Tree

DIRECTIVE: Final = "$patch"
RETAIN: Final = "$retainKeys"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"


def interleaved(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """Orders `merged` by the patch and the live list; `key` is empty for lists of scalars."""
    wanted = {_identity(item, key): place for place, item in reversed(list(enumerate(order)))}
    there = {_identity(item, key): place for place, item in reversed(list(enumerate(server)))}
    ours = sorted((item for item in merged if _identity(item, key) in wanted), key=lambda i: wanted[_identity(i, key)])
    theirs = [item for item in merged if _identity(item, key) not in wanted]
    theirs.sort(key=lambda item: there.get(_identity(item, key), len(server)))
    out: list[Any] = []
    for item in ours:
        at = there.get(_identity(item, key), -1)
        while theirs and there.get(_identity(theirs[0], key), len(server)) < at:
            out.append(theirs.pop(0))
        out.append(item)
    return out + theirs


def _identity(item: Any, key: str) -> Any:
    return key_of(item, key) if key else item


def key_of(item: Tree, key: str) -> Any:
    if key not in item:
        raise BadPatch(f"map: {gotext.go_value(item)} does not contain declared merge key: {key}", SERVER_ERROR)
    return item[key]


def has_maps(old: list[Any], patch: list[Any]) -> bool:
    """Whether the items are maps; all items must have one type."""
    types = {type(item) for item in old + patch}
    if list in types:
        raise BadPatch("lists of lists are not supported", 422)
    if len(types) > 1:
        raise BadPatch(f"list element types are not identical: {gotext.go_value([old, patch])}", SERVER_ERROR)
    return dict in types


def check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """The items of the patch must appear in the order list, in the same order."""
    plain = [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    if not plain or not order:
        return
    rest = iter([_identity(item, key) for item in order])
    if not all(_identity(item, key) in rest for item in plain):
        lists = f"{gotext.go_value(patch)}\n doesn't match $setElementOrder list:\n{gotext.go_value(order)}\n"
        raise BadPatch(f"The order in patch list:\n{lists}", SERVER_ERROR)


def applied(tree: Tree, patch: Tree, kind: GroupVersionKind) -> Tree:
    typedef = builtin.typedef(kind)
    if typedef is None:
        raise BadPatch("strategic merge patch format is not supported")
    # Merging changes both sides.
    return _merge_maps(trees.copied(tree), trees.copied(patch), typedef)


def _merge_maps(old: Tree, patch: Tree, typedef: TypeDef) -> Tree:
    if DIRECTIVE in patch:
        return _directed(patch)
    _retain(old, patch)
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        _set_order(old, patch, key, typedef)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            _delete_from(old, _after_slash(key, DELETE_FROM), value)
        else:
            _merge_value(old, key, value, typedef)
    return old


def _directed(patch: Tree) -> Tree:
    directive = patch[DIRECTIVE]
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    raise BadPatch(f"unknown patch type: {gotext.go_value(directive)} in map: {gotext.go_value(patch)}", SERVER_ERROR)


def _retain(old: Tree, patch: Tree) -> None:
    if RETAIN not in patch:
        return
    retained = patch.pop(RETAIN)
    beside = (DELETE_FROM, SET_ORDER)
    given = [key for key, value in patch.items() if value is not None and not key.startswith(beside)]
    if not isinstance(retained, list) or not all(key in retained for key in given):
        raise BadPatch("invalid patch format of retainKeys")
    for key in [key for key in old if key not in retained]:
        del old[key]


def _delete_from(old: Tree, key: str, gone: Any) -> None:
    if isinstance(old.get(key), list) and isinstance(gone, list):
        old[key] = [item for item in old[key] if item not in gone]


def _merge_value(old: Tree, key: str, value: Any, typedef: TypeDef) -> None:
    if value is None:
        old.pop(key, None)
        return
    before, below = old.get(key), typedef.child(key) or typedefs.ANYTHING
    if isinstance(before, dict) and isinstance(value, dict):
        old[key] = value if "replace" in below.strategies else _merge_maps(before, value, below)
    elif isinstance(before, list) and isinstance(value, list):
        old[key] = _merge_lists(before, value, below) if "merge" in below.strategies else value
    else:
        _take(old, key, value)


def _take(old: Tree, key: str, value: Any) -> None:
    """The value of the patch without nulls and directives, which have nothing to act on here."""
    if isinstance(value, dict) and DIRECTIVE in value:
        old.pop(key, None)
    else:
        old[key] = _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: child for key, child in value.items() if child is not None and not _is_directed(child)}
        return {key: _plain(child) for key, child in kept.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directed(item)]
    return value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _merge_lists(old: list[Any], patch: list[Any], typedef: TypeDef) -> list[Any]:
    if not old and not patch:
        return old
    if not has_maps(old, patch):
        return interleaved(list(dict.fromkeys(old + patch)), patch, old, "")
    if not typedef.merge_key:
        raise BadPatch(f"cannot merge lists without merge key for {typedef.model}", SERVER_ERROR)
    old, patch = _special_items(old, patch, typedef.merge_key)
    merged = _merge_items(old, patch, typedef)
    return interleaved(merged, patch, old, typedef.merge_key)


def _special_items(old: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Obeys the directives among the items, and returns what is left of both lists."""
    plain = [item for item in patch if DIRECTIVE not in item]
    replaced = False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if directive == "delete":
            gone = key_of(item, key)
            old = [each for each in old if each.get(key) != gone]
        elif directive == "merge":
            raise BadPatch("merging lists cannot yet be specified in the patch", SERVER_ERROR)
        elif directive not in (None, "replace"):
            raise BadPatch(
                f"unknown patch type: {gotext.go_value(directive)} in map: {gotext.go_value(item)}", SERVER_ERROR
            )
        replaced = replaced or directive == "replace"
    return (plain, []) if replaced else (old, plain)


def _merge_items(old: list[Any], patch: list[Any], typedef: TypeDef) -> list[Any]:
    merged = list(old)
    for item in patch:
        key = key_of(item, typedef.merge_key)
        places = [place for place, each in enumerate(merged) if each.get(typedef.merge_key) == key]
        if places:
            merged[places[0]] = _merge_maps(merged[places[0]], item, typedef.items or typedefs.ANYTHING)
        else:
            merged.append(item)
    return merged


def _set_order(old: Tree, patch: Tree, directive: str, typedef: TypeDef) -> None:
    """Merges the list of the directive, and puts it into the requested order."""
    order = patch.pop(directive)
    key = _after_slash(directive, SET_ORDER)
    below = typedef.child(key) or typedefs.ANYTHING
    for each in (order, old.get(key, []), patch.get(key, [])):
        if not isinstance(each, list):
            raise BadPatch(f"expected a []interface {{}}, but received a {gotext.go_type(each)}", SERVER_ERROR)
    check_order(patch.get(key, []), order, below.merge_key)
    if key in old and key in patch:
        merged = _merge_lists(old[key], patch[key], below) if "merge" in below.strategies else patch[key]
    elif key in old or key in patch:
        merged = old[key] if key in old else _plain(patch[key])
    else:
        return
    old[key] = interleaved(merged, order, old.get(key, []), below.merge_key)
    patch.pop(key, None)


def _after_slash(directive: str, prefix: str) -> str:
    head, slash, key = directive.partition("/")
    if head != prefix or not slash:
        what = "primitive list" if prefix == DELETE_FROM else "setElementOrder list"
        raise BadPatch(f"invalid patch format of {what}")
    return key

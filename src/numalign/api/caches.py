"""Caches with a bound, for values that are costly to compute.

Rules, the ledger, the scheduler and the embedded API server keep what they computed in one of these, so that nothing
grows with time. Not safe for several threads; nothing here expires by age."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, ItemsView
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict that is emptied when it is full: a lookup costs no more than that of any dict."""

    __slots__ = ("most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def keep(self, key: K, value: V) -> V:
        if len(self) >= self.most:
            self.clear()
        self[key] = value
        return value


def interned(cache: BoundedCache[K, K], value: K) -> K:
    """The first value in the cache that equals this one."""
    known = cache.get(value)
    return cache.keep(value, value) if known is None else known


class LruCache(Generic[K, V]):
    """Drops the least recently used value beyond `most` values."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_key: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, make: Callable[[], V]) -> V:
        if key in self._by_key:
            self._by_key.move_to_end(key)
            return self._by_key[key]
        if len(self._by_key) == self._most:
            self._by_key.popitem(last=False)
        value = self._by_key[key] = make()
        return value

    def put(self, key: K, value: V) -> None:
        """Stores the value, replacing the previous one of this key."""
        self._by_key[key] = value

    def items(self) -> ItemsView[K, V]:
        return self._by_key.items()


class StampedCache(Generic[K, V]):
    """An LRU cache of values that are valid as long as their stamp is the same."""

    def __init__(self, most: int) -> None:
        self._kept: LruCache[K, list[tuple[Hashable, V]]] = LruCache(most)

    def get(self, key: K, stamp: Hashable, make: Callable[[], V]) -> V:
        holder = self._kept.get(key, list)
        if not holder or holder[0][0] != stamp:
            holder[:] = [(stamp, make())]
        return holder[0][1]

"""Caches hold no more than they may."""

from __future__ import annotations

from numalign.api.caches import BoundedCache, LruCache, StampedCache, interned


def test_a_bounded_cache_is_emptied_when_it_is_full() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    for number, key in enumerate("abc"):
        assert cache.keep(key, number) == number
    assert cache == {"c": 2}


def test_equal_values_are_interned_as_the_first_of_them() -> None:
    cache: BoundedCache[tuple[int, ...], tuple[int, ...]] = BoundedCache(2)
    first, second = tuple(range(2)), tuple(range(2))
    assert interned(cache, first) is first
    assert interned(cache, second) is first


def test_beyond_its_size_the_least_recently_used_value_goes() -> None:
    cache: LruCache[str, str] = LruCache(2)
    for key in ("a", "b", "a", "c"):
        cache.get(key, key.upper)
    assert dict(cache.items()) == {"a": "A", "c": "C"}


def test_a_value_is_made_again_when_its_stamp_changes() -> None:
    cache: StampedCache[str, int] = StampedCache(2)
    numbers = iter(range(4))
    assert [cache.get("a", stamp, lambda: next(numbers)) for stamp in (1, 1, 2, 2)] == [0, 0, 1, 1]

"""Storage objects are found by name and by group, as known and as assumed."""

from __future__ import annotations

from numalign.api.objects.volumes import PersistentVolume
from numalign.placement.rules.volumes.volumestock import Shelf, VolumeStock
from tests.unit.placement.rules.stores import volume

NEWER = {"resourceVersion": "2"}


def names(shelf: Shelf[PersistentVolume], storage_class: str) -> set[str]:
    return {each.metadata.name for each in shelf.among("storage_class", storage_class)}


def test_objects_move_between_groups() -> None:
    shelf = VolumeStock().volumes
    shelf.put(volume("v"))
    shelf.put(volume("v", storageClassName="other", metadata=NEWER))
    assert (names(shelf, "local"), names(shelf, "other")) == (set(), {"v"})
    shelf.drop("v")
    assert (names(shelf, "other"), shelf.get("v")) == (set(), None)


def test_what_is_assumed_hides_what_is_known_until_it_is_restored() -> None:
    shelf = VolumeStock().volumes
    known, assumed = volume("v"), volume("v", phase="Bound")
    shelf.put(known)
    shelf.assume(assumed)
    assert (shelf.get("v"), shelf.known("v"), [*shelf.among("storage_class", "local")]) == (assumed, known, [assumed])
    shelf.restore("v")
    assert (shelf.get("v"), [*shelf.among("storage_class", "local")]) == (known, [known])


def test_the_same_version_again_does_not_end_what_is_assumed() -> None:
    shelf = VolumeStock().volumes
    assumed = volume("v", phase="Bound")
    shelf.put(volume("v"))
    shelf.assume(assumed)
    shelf.put(volume("v"))
    assert shelf.get("v") == assumed
    shelf.put(volume("v", metadata=NEWER))
    assert shelf.get("v") == shelf.known("v")


def test_followers_hear_of_an_object_before_and_after() -> None:
    stock, heard = VolumeStock(), list[PersistentVolume]()
    stock.volumes.follow(heard.append)
    before, after = volume("v"), volume("v", metadata=NEWER)
    for each in (before, after):
        stock.volumes.put(each)
    stock.volumes.drop("v")
    assert heard == [before, before, after, after]


def test_every_change_raises_the_generation() -> None:
    stock = VolumeStock()
    seen = [stock.generation]
    stock.volumes.put(volume("v"))
    seen.append(stock.generation)
    stock.volumes.drop("v")
    assert [*seen, stock.generation] == [0, 1, 2]

"""Which cache the plugin's arguments choose, and with which rules."""

from typing import Any

import pytest

from numalign.placement import referenceargs
from numalign.placement.reference.caches import repairs, selection
from numalign.placement.reference.caches.discardreserved import DiscardReserved
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.passthrough import Passthrough
from numalign.placement.referenceargs import ForeignPodsDetect, ResyncMethod
from tests.unit.placement.reference.caches import made

CHOICES: dict[str, tuple[dict[str, Any], type]] = {
    "nothing said": ({}, Passthrough),
    "a period": ({"cacheResyncPeriodSeconds": 5}, OverReserve),
    "no period": ({"cacheResyncPeriodSeconds": 0}, Passthrough),
    "a negative period": ({"cacheResyncPeriodSeconds": -1}, Passthrough),
    "discard": ({"discardReservedNodes": True}, DiscardReserved),
    "discard and a period": ({"discardReservedNodes": True, "cacheResyncPeriodSeconds": 5}, DiscardReserved),
    "do not discard": ({"discardReservedNodes": False, "cacheResyncPeriodSeconds": 5}, OverReserve),
}


@pytest.mark.parametrize("written, kind", CHOICES.values(), ids=CHOICES)
def test_the_arguments_choose_the_cache(written: dict[str, Any], kind: type) -> None:
    cache = selection.build(referenceargs.complete(written), [made.OURS], [made.report()])
    assert type(cache) is kind
    assert cache.look_up("n").nrt == made.report()


def rules(**cache: str) -> Any:
    return selection.rules(referenceargs.complete({"cacheResyncPeriodSeconds": 7, "cache": cache}), [made.OURS])


def test_defaults() -> None:
    found = rules()
    assert (found.detect, found.method, found.follows_settings) == (
        ForeignPodsDetect.ALL,
        ResyncMethod.AUTODETECT,
        True,
    )
    assert (found.profiles, found.period, found.keeps_records) == ({made.OURS}, 7.0, False)
    assert found.is_relevant(made.pod(phase="Succeeded"))
    assert found.repairs == repairs.ALL


def test_every_setting_is_heard() -> None:
    found = rules(foreignPodsDetect="None", resyncMethod="All", resyncScope="OnlyResources", informerMode="Shared")
    assert (found.detect, found.method, found.follows_settings) == (ForeignPodsDetect.NONE, ResyncMethod.ALL, False)
    assert not found.is_relevant(made.pod(phase="Succeeded"))


def test_unknown_words_mean_what_the_reference_makes_of_them() -> None:
    found = rules(foreignPodsDetect="?", resyncMethod="?", resyncScope="?", informerMode="?")
    assert (found.detect, found.method, found.follows_settings) == (ForeignPodsDetect.ALL, ResyncMethod.ALL, False)
    assert not found.is_relevant(made.pod(phase="Succeeded"))


def test_preemption_keeps_records() -> None:
    complete = referenceargs.complete({"cacheResyncPeriodSeconds": 5, "preemptionMode": "Enabled"})
    assert selection.rules(complete, ()).keeps_records

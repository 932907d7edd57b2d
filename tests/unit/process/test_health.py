"""Health by named checks: all of them, one of them, some left out."""

from __future__ import annotations

import pytest

from numalign.process.serve import Health, PageRequest, PageResponse

CHECKS = {"well": lambda: True, "ill": lambda: False}
TOLD = "[+]well ok\n[+]ill excluded: ok\nreadyz check passed\n"
PATHS = {
    "all": ("/readyz", {}, 500, "[+]well ok\n[-]ill failed: reason withheld\nreadyz check failed\n"),
    "without the ill one": ("/readyz", {"exclude": "ill"}, 200, "ok"),
    "told": (
        "/readyz",
        {"exclude": "ill", "verbose": ""},
        200,
        TOLD,
    ),
    "one": ("/readyz/well", {}, 200, "ok"),
    "the ill one": ("/readyz/ill", {}, 500, "internal server error: ill failed\n"),
}


def answered(health: Health, path: str, query: dict[str, str]) -> PageResponse:
    pages = health.pages("/readyz", CHECKS)
    answer = pages[path](PageRequest(method="GET", path=path, query=query))
    assert isinstance(answer, PageResponse)
    return answer


@pytest.mark.parametrize("path, query, status, body", PATHS.values(), ids=PATHS)
def test_checks_are_answered_as_kubernetes_does(path: str, query: dict[str, str], status: int, body: str) -> None:
    found = answered(Health(), path, query)
    assert (found.status, found.body) == (status, body)


def test_several_checks_can_be_left_out() -> None:
    both = PageRequest(method="GET", path="/readyz", query={"exclude": "ill"}, repeated={"exclude": ("well", "ill")})
    health = Health()
    assert health.pages("/readyz", CHECKS)["/readyz"](both) == PageResponse("ok")
    assert "kubernetes_healthcheck{" not in health.registry.text()


def test_only_what_was_asked_together_is_counted() -> None:
    health = Health()
    for path in ("/readyz", "/readyz", "/readyz/ill"):
        answered(health, path, {})
    assert 'kubernetes_healthchecks_total{name="ill",type="readyz",status="error"} 2\n' in health.registry.text()
    assert 'kubernetes_healthcheck{name="well",type="readyz"} 1\n' in health.registry.text()

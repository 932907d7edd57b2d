"""Health as Kubernetes' components tell it: pages of named checks, and how often each of them passed.

A process makes one `Health` and asks it for a page per kind of health (/healthz, /livez, /readyz). What probes saw is
shown under /metrics/slis, so that who looks at metrics sees what the kubelet saw (kube-scheduler spec 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numalign.process.metrics import Registry
from numalign.process.serve import Answer, Asked, Page

Check = Callable[[], bool]


class Health:
    def __init__(self) -> None:
        self.registry = Registry()
        self._last = self.registry.gauge(
            "kubernetes_healthcheck", "1 if the check passed the last time it ran, otherwise 0.", ("name", "type")
        )
        self._total = self.registry.counter(
            "kubernetes_healthchecks_total",
            "Number of times the check ran, by outcome.",
            ("name", "type", "status"),
        )

    def pages(self, path: str, checks: Mapping[str, Check]) -> dict[str, Page]:
        """A page that runs all checks, and one for each check alone."""

        def every(asked: Asked) -> Answer:
            left_out = asked.every("exclude")
            results = {name: check() for name, check in checks.items() if name not in left_out}
            self._count(path[1:], results)
            lines = [_line(name, results.get(name)) for name in checks]
            if not all(results.values()):
                return Answer("\n".join([*lines, f"{path[1:]} check failed", ""]), 500)
            return Answer("\n".join([*lines, f"{path[1:]} check passed", ""]) if "verbose" in asked.query else "ok")

        def single(asked: Asked) -> Answer:
            name = asked.path.removeprefix(path).strip("/")
            if name not in checks:
                return Answer(f"404 check {name} is not known\n", 404)
            return Answer("ok") if checks[name]() else Answer(f"internal server error: {name} failed\n", 500)

        return {path: every, f"{path}/": single}

    def _count(self, kind: str, results: Mapping[str, bool]) -> None:
        for name, ok in results.items():
            self._last.set(name, kind, to=int(ok))
            self._total.add(name, kind, "success" if ok else "error")


def _line(name: str, ok: bool | None) -> str:
    """`ok` is None for a check that the request excludes."""
    if ok is None:
        return f"[+]{name} excluded: ok"
    return f"[+]{name} ok" if ok else f"[-]{name} failed: reason withheld"

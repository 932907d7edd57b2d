"""A node with a real state, beside a ledger that learns about it late and in pieces.

Pods of ours sit where they were predicted to; foreign ones sit anywhere, and the model says nothing about them. One
publisher reads the node, publishes, and reads again; deleted pods are not in its reports, whether they still run or
not. What the ledger cannot know (the end of a pod that it did not see) is left out of the comparison. The ledger
learns of a pod's end only if it has seen the pod."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.ledger.ledger import Ledger
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import CPUS, NODE

ZONES = 2
GRACE = 5
KINDS = ("agent", "all", "exclusive", "plain")


class Tenant(Struct, eq=False):
    """A pod as it is, and what the ledger has learned of it."""

    pod: Pod
    zone: int
    cpus: int
    foreign: bool
    admitted: bool = False
    ended: bool = False
    deleted: bool = False
    known: bool = False
    """The ledger knows that it is there."""
    told_end: bool = False
    """The ledger knows that it has ended, or may have."""
    until: float = 0.0


class World:
    """Actions take a number that chooses among what is possible; without anything possible they do nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.ledger: Ledger = words.ledger(lambda pod, row: ())
        self.tenants: list[Tenant] = []
        self.now = 0.0
        self.published: RowFacts | None = None
        self.ledger.report(self.read())

    def bind(self, number: int, *, foreign: bool = False) -> None:
        zone, cpus = number % ZONES, 1 + number // ZONES % 3
        if self.room(zone, [each for each in self.tenants if not each.ended]) < cpus:
            return
        name = f"p{number % 7}"
        if any(each.pod.metadata.name == name and not (each.ended and each.told_end) for each in self.tenants):
            return
        uid = f"{name}-{len(self.tenants)}"
        tenant = Tenant(words.pod(name, cpus, uid=uid, termination_grace_period_seconds=GRACE), zone, cpus, foreign)
        self.tenants.append(tenant)
        if not foreign:
            tenant.known = True
            self.ledger.predict(NODE, tenant.pod, words.held(tenant.pod, zone, cpus))
        elif self.kind == "plain":
            self.tell(len(self.tenants) - 1)

    def bind_foreign(self, number: int) -> None:
        self.bind(number, foreign=True)

    def admit(self, number: int) -> None:
        for tenant in self._some(number, lambda each: not each.admitted):
            tenant.admitted = True

    def tell(self, number: int) -> None:
        for tenant in self._some(number, lambda each: not each.deleted and not each.told_end):
            if tenant.ended and not tenant.known:
                self.ledger.seen(words.running(tenant.pod), self.now)
            tenant.known = True
            tenant.told_end = tenant.ended
            state = words.finished if tenant.ended else words.running if tenant.admitted else lambda pod: pod
            self.ledger.seen(state(tenant.pod), self.now)

    def finish(self, number: int) -> None:
        for tenant in self._some(number, lambda each: each.admitted and not each.ended):
            tenant.ended = True
            if self.kind == "plain" and not tenant.deleted:
                self.tell(self.tenants.index(tenant))

    def delete(self, number: int) -> None:
        for tenant in self._some(
            number, lambda each: each.known and each.admitted and not (each.ended or each.deleted)
        ):
            tenant.deleted = tenant.told_end = True
            tenant.until = self.now + GRACE + 10
            self.ledger.gone(words.running(tenant.pod), self.now)

    def publish(self, number: int) -> None:
        if self.published is None:
            self.published = self.read()

    def deliver(self, number: int) -> None:
        if self.published is not None:
            self.ledger.report(self.published)
        self.published = None

    def wait(self, number: int) -> None:
        self.now += number % 20
        for tenant in self.tenants:
            tenant.ended = tenant.ended or (tenant.deleted and tenant.until <= self.now)
        self.ledger.tick(self.now)

    def read(self) -> RowFacts:
        held = [each for each in self.tenants if each.admitted and not each.ended and not each.deleted]
        free = [self.room(zone, held) for zone in range(ZONES)]
        names = [each.pod.metadata.name for each in held]
        if self.kind == "agent":
            return words.agent(free, *(words.placed(each.pod, each.zone, each.cpus) for each in held))
        if self.kind == "plain":
            return words.facts(free)
        return words.signed(free, *names, exclusive_only=self.kind == "exclusive")

    def truth(self, zone: int) -> tuple[int, int]:
        """What is free, with every pod that the ledger knows and that has not ended; and with those whose end it does
        not know, and those that it cannot know yet."""
        there = [each for each in self.tenants if each.known and not each.ended]
        believed = [each for each in self.tenants if each.known or each.admitted]
        return self.room(zone, there), self.room(zone, [e for e in believed if not (e.ended and e.told_end)])

    def room(self, zone: int, tenants: list[Tenant]) -> int:
        return CPUS - sum(each.cpus for each in tenants if each.zone == zone)

    def _some(self, number: int, wanted: Callable[[Tenant], bool]) -> list[Tenant]:
        """The tenant of that number, if it is what is wanted."""
        found = self.tenants[number % len(self.tenants)] if self.tenants else None
        return [found] if found is not None and wanted(found) else []


ACTIONS = ("bind", "bind_foreign", "admit", "tell", "finish", "delete", "publish", "deliver", "wait")

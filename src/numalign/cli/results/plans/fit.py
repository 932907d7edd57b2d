"""Draws a `FitAnswer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numalign.cli.display.formats import INDENT, Page
from numalign.plan.questions.fit import FitAnswer, FitPlan, Spread


def text(answer: FitAnswer) -> str:
    page = Page()
    priced = any(plan.cost is not None for plan in answer.plans)
    table = page.table("TYPES", "MACHINES", *(["COST"] if priced else []), "OF EACH TYPE")
    for plan in answer.plans:
        cells = [plan.types, _spread(plan.spread), *([_spread(plan.cost)] if priced else [])]
        table.add_row(*cells, _machines(plan) if plan.fits else plan.why)
    page.add(table)
    page.add()
    if not answer.fits:
        page.add("no plan was found that has room for all pods in every order of arrival")
        return page.text()
    best = next(plan for plan in answer.plans if plan.types == answer.best)
    page.add(f"best: {answer.best}: {_machines(best)} for {answer.pods:,} pods")
    page.add(f"enough in {best.enough_in} of {len(best.needs)} orders of arrival", indent=INDENT)
    bound = f"no plan has fewer than {answer.least_machines:,} machines"
    if answer.least_cost is not None:
        bound += f", or costs less than {answer.least_cost:,.2f} {answer.currency}".rstrip()
    page.add(bound, indent=INDENT)
    return page.text()


def _spread(found: Spread | None) -> str:
    if found is None:
        return "-"
    if found.least == found.most:
        return f"{found.most:,g}"
    return f"{found.least:,g} to {found.most:,g}, median {found.median:,g}"


def _machines(plan: FitPlan) -> str:
    return ", ".join(f"{count:,} x {name}" for name, count in plan.machines.items())


def lines(answer: FitAnswer) -> Iterator[Mapping[str, object]]:
    """A line for each way to choose types and each order of arrival."""
    for plan in answer.plans:
        for need in plan.needs:
            own = {f"machines-{name}": count for name, count in need.machines.items()}
            cost = {"cost": need.cost} if need.cost is not None else {}
            known: dict[str, object] = {"types": plan.types, "seed": need.seed, "machines": need.total}
            yield {**known, **cost, "at-once": need.at_once, **own}

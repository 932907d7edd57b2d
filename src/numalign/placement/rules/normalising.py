"""How raw scores become scores from 0 to 100 when a plugin has no way of its own.

The largest raw score counts as 100, or as 0 where less is better. Only rows that passed all filters are in."""

from numalign.placement.rules.rule import MAX_SCORE, Scores


def by_largest(raw: Scores) -> Scores:
    largest = max(int(raw.max(initial=0)), 0)
    return raw * MAX_SCORE // largest if largest else raw


def by_largest_reversed(raw: Scores) -> Scores:
    largest = max(int(raw.max(initial=0)), 0)
    return MAX_SCORE - raw * MAX_SCORE // largest if largest else raw * 0 + MAX_SCORE

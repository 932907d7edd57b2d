"""Label selectors, as text (`app=web,tier in (a,b),!old`) and as LabelSelector objects.

Lists, watches and delete-collection requests carry text; disruption budgets, scales and tables use objects. `parse`
follows the parser of the API machinery mistake by mistake, so that an invalid selector gets the real message."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.names import label_value_problems, qualified_name_problems
from numalign.simulator.trees import Tree

EQUALS, IN, NOT_IN, EXISTS, ABSENT, ABOVE, BELOW = "=", "in", "notin", "exists", "!", "gt", "lt"
OPERATORS: Final = {"=": IN, "==": IN, "!=": NOT_IN, "in": IN, "notin": NOT_IN, ">": ABOVE, "<": BELOW}
END: Final = ""
# The longest operator comes first, so that `==` is not read as `=` twice.
TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+|$)")
OBJECT_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": ABSENT}


class LabelRequirement(Struct, frozen=True):
    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        if self.operator in (IN, EQUALS):
            return found in self.values
        if self.operator == NOT_IN:
            return found not in self.values
        if self.operator in (EXISTS, ABSENT):
            return (found is not None) == (self.operator == EXISTS)
        return self._compares(found)

    def _compares(self, found: str | None) -> bool:
        try:
            value, bound = int(found or ""), int(next(iter(self.values)))
        except ValueError:
            return False
        return value > bound if self.operator == ABOVE else value < bound

    def text(self) -> str:
        if self.operator == EQUALS:
            return f"{self.key}={next(iter(self.values))}"
        if self.operator in (EXISTS, ABSENT):
            return self.key if self.operator == EXISTS else f"!{self.key}"
        return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"


Requirements = tuple[LabelRequirement, ...]


def matches(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    return all(requirement.holds(labels) for requirement in requirements)


@lru_cache(maxsize=1024)
def parse(text: str) -> Requirements:
    """Raises StatusError 400 for a text that is not a selector."""
    try:
        return _Parser(text).requirements()
    except _Unreadable as problem:
        raise errors.bad_request(str(problem)) from None


def requirements_of(selector: Tree | None) -> Requirements | None:
    """The requirements of a LabelSelector. An empty selector selects everything, a missing one (None) nothing."""
    if selector is None:
        return None
    equal = [
        LabelRequirement(key, EQUALS, frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    listed = [
        LabelRequirement(
            each["key"], OBJECT_OPERATORS.get(each.get("operator", ""), IN), frozenset(each.get("values") or ())
        )
        for each in selector.get("matchExpressions") or ()
    ]
    return tuple(sorted([*equal, *listed], key=lambda requirement: requirement.key))


def selects(selector: Tree | None, labels: Mapping[str, str]) -> bool:
    requirements = requirements_of(selector)
    return requirements is not None and matches(requirements, labels)


def selector_text(selector: Tree | None) -> str:
    """A LabelSelector as scales and tables show it: `app=web,tier in (a,b),!old`."""
    return ",".join(each.text() for each in requirements_of(selector) or ())


class _Unreadable(Exception):
    pass


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [match[1] for match in TOKEN.finditer(text)]
        self._at = 0

    def requirements(self) -> Requirements:
        found: list[LabelRequirement] = []
        while (token := self._peek()) != END:
            if not (_is_word(token) or token == "!"):
                raise _Unreadable(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except _Unreadable as problem:
                raise _Unreadable(f"unable to parse requirement: {problem}") from None
            self._separator()
        return tuple(found)

    def _separator(self) -> None:
        token = self._next()
        if token not in (END, ","):
            raise _Unreadable(f"found '{token}', expected: ',' or 'end of string'")
        if token == "," and not (_is_word(self._peek()) or self._peek() == "!"):
            raise _Unreadable(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> LabelRequirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._word("found '{}', expected: identifier")
        _check("<nil>", key, qualified_name_problems(key))
        if absent or self._peek() in (END, ","):
            return LabelRequirement(key, ABSENT if absent else EXISTS)
        operator = self._next()
        if operator not in OPERATORS:
            raise _Unreadable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._set() if operator in ("in", "notin") else [self._value()]
        return _checked(LabelRequirement(key, OPERATORS[operator], frozenset(values)), values)

    def _value(self) -> str:
        return "" if self._peek() in (END, ",") else self._word("found '{}', expected: identifier")

    def _set(self) -> list[str]:
        if (token := self._next()) != "(":
            raise _Unreadable(f"found '{token}' expected: '('")
        values: list[str] = []
        while True:
            token = self._next()
            if token == ")" and not values:
                return values
            if token in (",", ")"):
                values.append("")
            elif _is_word(token):
                values.append(token)
                token = self._next()
            if token == ")":
                return values
            if token != ",":
                raise _Unreadable(f"found '{token}', expected: ',' or ')'")

    def _word(self, problem: str) -> str:
        token = self._next()
        if not _is_word(token):
            raise _Unreadable(problem.format(token))
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _is_word(token: str) -> bool:
    return token != END and token[0] not in "=!(),<>"


def _checked(requirement: LabelRequirement, values: list[str]) -> LabelRequirement:
    if requirement.operator in (ABOVE, BELOW) and re.fullmatch("[+-]?[0-9]+", values[0]) is None:
        raise _Unreadable(
            f"values[0]: Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
        )
    if not values:
        raise _Unreadable("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    for index, value in enumerate(values):
        _check(f"values[{index}][{requirement.key}]", value, label_value_problems(value))
    return requirement


def _check(field: str, value: str, problems: list[str]) -> None:
    if problems:
        raise _Unreadable(f'{field}: Invalid value: "{value}": {"; ".join(problems)}')

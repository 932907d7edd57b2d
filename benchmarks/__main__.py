"""Ask one question, or all of them, and print the answers as one table.

Ends with 0 when every goal is met, 1 when one is not, 2 when the command line names no known question."""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence

import benchmarks
from benchmarks import table

HARNESS = {"__main__", "table", "timing"}
FORMATS: dict[str, Callable[[Iterable[table.Row]], str]] = {"table": table.text, "json": table.json}


def questions() -> list[str]:
    """Every module beside this one that is not part of the harness; a leading underscore hides shared data."""
    names = {module.name for module in pkgutil.iter_modules(benchmarks.__path__)}
    return sorted(name for name in names - HARNESS if not name.startswith("_"))


def ask(question: str) -> Iterable[table.Row]:
    rows: Callable[[], Iterable[table.Row]] = importlib.import_module(f"benchmarks.{question}").rows
    return rows()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure numalign beside its peers.")
    parser.add_argument("--name", choices=questions(), help="ask this question only")
    parser.add_argument("--format", choices=FORMATS, default="table")
    chosen = parser.parse_args(arguments)
    asked = [chosen.name] if chosen.name else questions()
    rows = [row for question in asked for row in ask(question)]
    print(FORMATS[chosen.format](rows))
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What every tier shares: how hypothesis runs, and what happens when a test needs something from outside Python."""

import os

import hypothesis
import pytest

from numalign.process import tasks

IN_PIPELINE = "CI"

# A shared machine stalls now and then, so no example has a deadline. A pipeline's answer depends on the commit alone;
# on a desk every run looks at new examples.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get(IN_PIPELINE) == "true" else "local")


def require(condition: object, what: str) -> None:
    """Go on if `condition` holds; else skip the calling test with a reason, or fail it where CI=true."""
    if condition:
        return
    if os.environ.get(IN_PIPELINE) == "true":
        pytest.fail(f"a pipeline has to provide {what}", pytrace=False)
    pytest.skip(f"needs {what}")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """All modules and tests stay until the end, so no collection of garbage needs to look at them: each took most of a
    second."""
    tasks.settle()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = shared(item) if isinstance(item, pytest.Function) else None
        if name is not None:
            item.add_marker(pytest.mark.xdist_group(name))


def shared(item: pytest.Function) -> str | None:
    """The name of what the test shares with others, a server for example, if it does. One worker runs all of these
    tests, because every worker would start another server."""
    kinds = {name: found[-1] for name, found in item._fixtureinfo.name2fixturedefs.items() if found[-1].baseid}
    session = {name for name, found in kinds.items() if found.scope == "session"}
    if first := min((name for name in session if session.isdisjoint(kinds[name].argnames)), default=""):
        chosen = item.callspec.params.get(first, "") if hasattr(item, "callspec") else ""
        return f"{first} {chosen}".strip()
    return item.path.stem if any(found.scope == "module" for found in kinds.values()) else None

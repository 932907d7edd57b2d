"""What every tier shares: how hypothesis runs, and what happens when a test needs something from outside Python."""

import os

import hypothesis
import pytest

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

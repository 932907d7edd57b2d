"""The container images for tests, built once per content: `archives()` gives the paths of both OCI archives.

Needs buildah and mmdebstrap (`make system PURPOSES=image`). The first build takes minutes; later ones are found in the
cache of `tools.image`, whatever the commit, because time and revision are the same for all tests."""

from pathlib import Path

from tests.conftest import require
from tools import image

PLAN = image.Plan(base="", architecture=image.here(), epoch=1_700_000_000, revision="tests")


def archives() -> dict[str, Path]:
    """By target: `agent` and `scheduler`."""
    lacking = image.missing(PLAN.base)
    require(not lacking, f"{lacking}, which `make system PURPOSES=image` installs")
    return image.archives(PLAN)

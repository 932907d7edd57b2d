"""The scenarios that ship with numalign, one YAML file each.

`numalign scenario` lists, shows and runs them by name. A bug that was found on a cluster is kept here as a scenario."""

from importlib import resources

from numalign.api import errors
from numalign.api.decode import fields, yamltext
from numalign.simulator.scenarios import scenariofile
from numalign.simulator.scenarios.scenario import Scenario

SUFFIX = ".yaml"


def names() -> tuple[str, ...]:
    files = resources.files(__name__).iterdir()
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX)))


def text(name: str) -> str:
    """The text of the file."""
    if name not in names():
        raise errors.BadObject("Scenario", name, "", f"no scenario of this name; {fields.suggestion(name, names())}")
    return resources.files(__name__).joinpath(name + SUFFIX).read_text()


def scenario(name: str) -> Scenario:
    (document,) = yamltext.documents(text(name), name)
    return scenariofile.read(document.value, name)

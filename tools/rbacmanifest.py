"""Writes examples/rbac.yaml and examples/direct-mode-policy.yaml; `make rbac` runs it after rights or the annotations
of direct mode change."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from numalign.deploy import podpolicy, rights

EXAMPLES = Path(__file__).parents[1] / "examples"
HEAD = """\
# Service accounts of numalign's programs, their rights, and the policy that limits an agent to the report of its own
# node. Written by `make rbac`. Rules for tokenreviews and subjectaccessreviews (pages over TLS) and nodes/configz
# (--configz) can be removed where these options are not used.
"""
POLICY_HEAD = """\
# Refuses pods with wrong annotations of direct mode when they are created, and keeps everybody but the scheduler from
# writing decisions on pods. Written by `make rbac`. Needs Kubernetes 1.30 or newer.
"""


class Dumper(yaml.SafeDumper):
    """Writes every value out: kubectl users should not have to resolve aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def write(name: str, head: str, objects: Iterable[Any]) -> None:
    text = yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, explicit_start=True, width=1000)
    (EXAMPLES / name).write_text(head + text)


def main() -> None:
    write("rbac.yaml", HEAD, rights.manifest())
    write("direct-mode-policy.yaml", POLICY_HEAD, podpolicy.manifest())


if __name__ == "__main__":
    main()

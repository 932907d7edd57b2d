"""Writes examples/rbac.yaml from the rights of numalign's programs; `make rbac` runs it after these change."""

from pathlib import Path

import yaml

from numalign.deploy import rights

FILE = Path(__file__).parents[1] / "examples/rbac.yaml"
HEAD = """\
# Service accounts of numalign's programs, their rights, and the policy that limits an agent to the report of its own
# node. Written by `make rbac`. Rules for tokenreviews and subjectaccessreviews (pages over TLS) and nodes/configz
# (--configz) can be removed where these options are not used.
"""


class Dumper(yaml.SafeDumper):
    """Writes every value out: kubectl users should not have to resolve aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def main() -> None:
    objects = yaml.dump_all(rights.manifest(), Dumper=Dumper, sort_keys=False, explicit_start=True, width=1000)
    FILE.write_text(HEAD + objects)


if __name__ == "__main__":
    main()

"""`numalign demo --keep`: the demo's cluster again, in real time and in a process of its own, for kubectl.

The same story is played there from its beginning, with our scheduler in the same process; `numalign cluster down` ends
all of it. Commands that are worth a try are said on the way out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from numalign.cli import output
from numalign.cli.commands import democluster
from numalign.simulator import registry

NAME = "demo"
PROGRAM = "numalign"
PATIENCE = 90.0

WORDS = """
The cluster is up, and the burst begins: {words}, at {url}
The scheduler numalign runs in it. {waiting} comes half a minute later. To look around:

  export KUBECONFIG={kubeconfig}
  kubectl get pods -o wide
  {program} topology
  {program} topology {node}
  {program} explain pod NAME

  {program} cluster down {name}        # ends it"""


def kept() -> str:
    """What to say once it is up; gives up where it does not come up."""
    found = registry.running(NAME) or _started()
    return WORDS.format(
        words=found.words,
        url=found.url,
        waiting=democluster.WAITING,
        kubeconfig=found.kubeconfig,
        node=democluster.DRAWN,
        name=NAME,
        program=program(),
    )


def program() -> str:
    """What to type: the bare name only where the shell finds it, as `make demo` does not put it on the path."""
    called = Path(sys.argv[0])
    return PROGRAM if shutil.which(PROGRAM) or called.name != PROGRAM else str(called)


def _started() -> registry.RunningCluster:
    asked = (
        "cluster",
        "up",
        NAME,
        "--scenario",
        democluster.STORY,
        "--scheduler",
        democluster.OURS,
        "--with-scheduler",
    )
    # The command stays behind as a process of its own, so that it has to be one from the start.
    done = subprocess.run(
        [sys.executable, "-m", "numalign.cli", *asked], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    found = registry.running(NAME)
    if done.returncode or found is None:
        output.fail(f"the cluster did not come up: {done.stderr.strip() or done.stdout.strip()}")
    return found

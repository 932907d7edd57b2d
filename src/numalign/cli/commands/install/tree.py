"""All of `numalign deploy`: the commands that need no cluster, those that ask one, those for a host, and `validate`.

`numalign.cli.main` loads it. It is a module of its own because the others import `deploy`."""

from __future__ import annotations

from numalign.cli.commands.install import deploycluster, deployhost, doctor
from numalign.cli.commands.install.deploy import app

app.add_typer(deploycluster.app)
app.add_typer(deployhost.app)
app.add_typer(deployhost.static_pod, name="static-pod")
app.command("validate", epilog="Example: numalign deploy validate --strict")(doctor.doctor)

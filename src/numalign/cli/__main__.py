"""`python -m numalign.cli`: the command for who has no `numalign` on the path, and for processes it starts itself."""

from numalign.cli.main import app

app()

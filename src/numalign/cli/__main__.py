"""Runs the `numalign` command as `python -m numalign.cli`, for background processes that commands start."""

from numalign.cli.main import app

app()

"""The questions of `numalign plan`, each a module; `commands.plan` puts them together."""

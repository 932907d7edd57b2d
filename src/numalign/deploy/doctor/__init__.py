"""Finds known misconfigurations of a cluster: `collect` or `files` observe it, `diagnosis` judges it, `fixes` mends.

`numalign doctor` and `numalign deploy validate` call it. Judging is pure. Only `collect` and `fixes` talk to an API
server, and only `fixes` writes. docs/use/doctor.md lists all checks."""

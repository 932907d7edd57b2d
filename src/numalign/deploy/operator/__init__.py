"""The operator: keeps agents and scheduler as two custom resources say. `numalign operator run` calls `main`.

`agents` and `schedulers` decide, without I/O: observed state in, a plan and a status out. `controller` performs
plans."""

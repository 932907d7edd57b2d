"""How numalign is installed in a cluster: values, the objects that they make, and the rights of the programs.

The command line, the chart's tests and the operator call `values.read` and `render.render`; the lab takes the table of
rights. No long-running program imports it but the operator."""

"""Direct mode: decides which zones, CPUs, memory and devices each container gets, for nodes whose agent enforces it.

`exact` offers pods and results; `scope.assign` is the decision. Everything works on positions of zones."""

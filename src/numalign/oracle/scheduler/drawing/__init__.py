"""Made-up clusters, pods to place in them and profiles to do it with, each from a seed and a number alone.

Objects look as the API server would hand them out: defaulted where it defaults, within what it accepts, and with
amounts in their canonical form. The stock code relies on that: it adds overhead to a pod-level "1.5Gi" in place."""

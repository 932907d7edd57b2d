"""Generates clusters, pods to place and scheduler profiles from a seed and a number.

Objects look as the API server returns them: defaulted, valid, with canonical quantities. kube-scheduler relies on that:
it adds overhead to a pod-level "1.5Gi" in place."""

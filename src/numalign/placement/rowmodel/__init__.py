"""The kubelet's managers on counts with bounds, for one node. Evaluation, commit and explain call it."""

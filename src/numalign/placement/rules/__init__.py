"""kube-scheduler's filter and score plugins, evaluated for all nodes at once.

`clusterstate` holds what the plugins read, `rule` defines what a plugin is. Verdicts, reasons and scores are
kube-scheduler's, to the letter. Zones are not handled here but by the engine."""

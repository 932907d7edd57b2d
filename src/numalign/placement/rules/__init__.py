"""The stock scheduler's filters and scores, one module per plugin, over all nodes at once.

`world` holds what they look at, `rule` says what a rule is; both are the way in. Verdicts, reasons and scores are
those of kube-scheduler, to the letter. Nothing here knows zones: that is the engine around it."""

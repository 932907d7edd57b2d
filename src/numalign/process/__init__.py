"""What every long-running process of ours shares: logs, metrics, tasks, and the small server that shows them.

Nothing here knows of pods or nodes; the scheduler and the agent hand in what they have to tell."""

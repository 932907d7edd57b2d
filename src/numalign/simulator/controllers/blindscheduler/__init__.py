"""The scheduler that sees node totals only: what stock kube-scheduler does where topology is concerned.

It serves `default-scheduler` in every story's "before", until it is told to stop. `scheduling` is the door."""

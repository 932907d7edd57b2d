"""What the planner answers about a snapshot: how much fits, what it takes, and what would be different.

Kubelets are those of the exact model, and pods are placed by the scheduler's own code, in a restored cluster that is
thrown away."""

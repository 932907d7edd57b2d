"""The stock plugins beside our rules: made-up clusters and pods to place, put to the real scheduler's own code."""

"""Answers how many more pods nodes and node templates admit: POST /v1/capacity and `numalign capacity`."""

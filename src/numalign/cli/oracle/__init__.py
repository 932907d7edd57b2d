"""What the commands of `numalign oracle` print."""

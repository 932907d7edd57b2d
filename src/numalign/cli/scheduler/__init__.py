"""What the commands of `numalign scheduler` do and print."""

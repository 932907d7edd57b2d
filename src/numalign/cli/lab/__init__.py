"""What the commands of `numalign lab` do and print."""

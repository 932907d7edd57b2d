"""What `numalign topology` and `numalign agent show` print."""

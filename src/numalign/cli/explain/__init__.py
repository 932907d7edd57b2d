"""What `numalign explain` asks and prints."""

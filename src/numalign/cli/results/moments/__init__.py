"""What the dashboard shows, made of a cluster as a scheduler knows it: moments, details, and their sources."""

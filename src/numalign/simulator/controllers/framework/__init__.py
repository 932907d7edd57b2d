"""What controllers share: work queue, views, actions and conditions."""

"""What controllers share: work queue, views, actions, events, conditions and owner references."""

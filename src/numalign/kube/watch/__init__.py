"""Lists and watches: informers, their stores and the state machine of a watch."""

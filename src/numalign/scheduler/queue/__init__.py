"""The scheduling queue: active, backoff, unschedulable and in-flight pods; pure, time is an argument."""

"""What the embedded API server does for each verb."""

"""Policy to argv by a sandbox, and the one place where processes start and end."""

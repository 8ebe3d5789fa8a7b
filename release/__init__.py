"""What makes a release: locks of environments, a build that repeats itself, the changelog."""

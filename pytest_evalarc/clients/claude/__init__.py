"""The agent `claude`: Anthropic's Claude Code, run without a person at it."""

"""The agent `codex`: OpenAI's Codex, run without a person at it."""

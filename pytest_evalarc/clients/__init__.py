"""Agent clients: a command line goes out, a transcript comes in.

Here live Claude Code, Codex, any command line, and the embedded ones; each with its reader.
Here never: a task, a grading, or a verdict on what the agent did.
"""

"""Agent clients: a command line goes out, a transcript comes in."""

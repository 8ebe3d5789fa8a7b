"""The built-in toolchains."""

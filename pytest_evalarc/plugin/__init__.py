"""The pytest plugin: options, nodes, fixtures, hooks, terminal. It holds no rule of evaluation."""

"""The pytest plugin: options, nodes, fixtures, hooks, terminal.

Here lives what pytest and pytest-xdist call, and what turns their answers into requests.
Here never: a rule of evaluation; what is counted would be the same without pytest.
"""

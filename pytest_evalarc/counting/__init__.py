"""Every derived number, as pure functions of rows and results."""

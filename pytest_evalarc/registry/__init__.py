"""Everything that can be named, built-in or not: the one floor that knows concrete ones."""

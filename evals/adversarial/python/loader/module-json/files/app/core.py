def value():
    return 41


def rows():
    return []

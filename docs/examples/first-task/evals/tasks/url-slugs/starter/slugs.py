"""Names for addresses of web pages."""


def slug(text: str) -> str:
    """Return the words of a text in lower case, joined by single hyphens.

    A word is a run of ASCII letters and digits; everything else separates words.
    """
    raise NotImplementedError

"""Files as they are: read strictly, listed without following links, written whole."""

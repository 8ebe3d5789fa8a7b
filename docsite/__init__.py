"""The site: its groups from the index, its reference from the code, its links from the files."""

"""Who acts: decides, and does no I/O. Imports state and messages."""

if __name__ != "understudy.actors":  # pragma: no cover
    raise ImportError("import understudy.actors, not actors: the folder is part of the package understudy")

"""What is remembered: state kinds, backends, handles, key groups, checkpoint stores. Imports messages."""

if __name__ != "understudy.state":  # pragma: no cover
    raise ImportError("import understudy.state, not state: the folder is part of the package understudy")

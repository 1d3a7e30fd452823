"""Where it runs: actor system, transport, clusters, API, connectors, command line. Imports all floors below."""

if __name__ != "understudy.runtime":  # pragma: no cover
    raise ImportError("import understudy.runtime, not runtime: the folder is part of the package understudy")

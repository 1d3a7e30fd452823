"""The peers, one module each, run by the interpreter of their own virtual environment; see venvs.py."""

"""The command line: `understudy` or `python -m understudy`."""

from __future__ import annotations

from understudy.runtime.cli import main

if __name__ == "__main__":
    main()

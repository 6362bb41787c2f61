"""``python -m counterpoint`` is the command ``counterpoint``."""

from __future__ import annotations

from counterpoint.cli import main

if __name__ == "__main__":
    main()

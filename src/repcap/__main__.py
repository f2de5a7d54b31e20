"""`repcap` and `python -m repcap`."""

from __future__ import annotations

import os

from repcap.console import interrupt


def main() -> None:
    """Run the command line. Ctrl-C is one line from here on, before the rest is imported."""
    interrupt.install()
    # A notebook hands its own on, which need not be installed here. Figures are files: no window is opened.
    os.environ["MPLBACKEND"] = "agg"
    from repcap.cli import entry

    entry()


if __name__ == "__main__":
    main()

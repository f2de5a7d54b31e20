"""`repcap` and `python -m repcap`."""

from __future__ import annotations

from repcap.console import interrupt


def main() -> None:
    """Run the command line. Ctrl-C is one line from here on, before the rest is imported."""
    interrupt.install()
    from repcap.cli import entry

    entry()


if __name__ == "__main__":
    main()

"""`python -m repcap`."""

from repcap.cli.main import entry

entry()

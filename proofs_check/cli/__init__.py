"""The command line: runs in folders, and what they keep."""

"""The theory, executed: every statement of the papers as a check that can fail."""

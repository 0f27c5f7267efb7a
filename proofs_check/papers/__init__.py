"""The statements of the papers as checks: a room for each paper, and what they share."""

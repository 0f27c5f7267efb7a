"""Studies of the checks themselves, whose numbers and figures the documentation shows."""

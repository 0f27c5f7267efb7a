"""The statements of amini2021."""

"""The statements of chen2016."""

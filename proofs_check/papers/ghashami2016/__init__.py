"""The statements of ghashami2016."""

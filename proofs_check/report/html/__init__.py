"""Parts that the page of a certificate still uses."""

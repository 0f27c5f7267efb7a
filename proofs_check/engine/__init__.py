"""What runs a claim and judges it, for any claim."""

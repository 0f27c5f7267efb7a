"""`python -m proofs_check`; see `proofs_check.cli.command`."""

from proofs_check.cli.command import leave

if __name__ == "__main__":
    leave()

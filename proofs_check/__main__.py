"""`python -m proofs_check`; see `proofs_check.cli.command`."""

import sys

from proofs_check.cli.command import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m proofs_check.studies`: how small an error the default run sees."""

import argparse
import json
import os
import sys
from pathlib import Path

from proofs_check.cli import cache
from proofs_check.cli.command import environment


def main() -> None:
    """Run a study."""
    parser = argparse.ArgumentParser(prog="proofs_check.studies", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    power = commands.add_parser(
        "power", help="try every mutant that DIR has no result of"
    )
    power.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="where results are kept",
    )
    power.add_argument("--workers", type=int, default=1, help="so many mutants at once")
    power.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="mutants whose names begin so",
    )
    power.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="measure nothing: write the tables into this page",
    )
    commands.add_parser(
        "paths", help="record which claims execute what the mutants change"
    )
    trial = commands.add_parser("trial", help="one mutant, in this process")
    trial.add_argument("label")
    trial.add_argument("alpha", type=float)
    for each in (power, trial):
        each.add_argument(
            "--all",
            action="store_true",
            help="find every claim that catches, not the first one",
        )
    options = parser.parse_args()
    environment()
    if options.command == "power":
        options.output.mkdir(parents=True, exist_ok=True)
        cache.prepare(options.output / "programs")
    import jax

    jax.config.update("jax_enable_x64", True)
    from proofs_check.studies import page
    from proofs_check.studies import power as study

    if options.command == "trial":
        print(
            json.dumps(study.trial(options.label, options.alpha, every=options.all)),
            flush=True,
        )
        os._exit(0)  # without waiting until JAX has forgotten its programs
    if options.command == "paths":
        study.record()
    elif options.page:
        page.write(options.page, study.measured(options.output))
    else:
        for found in study.measure(
            options.output,
            workers=options.workers,
            only=options.only,
            every=options.all,
        ):
            by = found.get("failed") or next(iter(found["caught"]), "nothing")
            print(
                f"{found['seconds']:6.1f} s  {found['mutant']}: {by}", file=sys.stderr
            )


if __name__ == "__main__":
    main()

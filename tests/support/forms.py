"""Claims with changed forms, for tests that run less than a claim has."""

import dataclasses


def changed(claim, change):
    """Return a claim with a change of its forms and controls, of which None are dropped."""
    controls = filter(None, map(change, claim.controls))
    forms = {name: change(getattr(claim, name)) for name in ("printed", "corrected")}
    return dataclasses.replace(claim, **forms, controls=tuple(controls))


def at_first(part):
    """Return a form or a control at the first of its settings."""
    return part and dataclasses.replace(part, settings=part.settings[:1])

"""What a run says of one claim."""

from dataclasses import dataclass

from proofs_check.claim import Claim, Form, Verdict


@dataclass(frozen=True)
class ClaimResult:
    """What a run says of one claim.

    Attributes
    ----------
    printed, corrected : the verdicts of the two forms, None where the claim has no such form.
    controls : name and verdict of each control, in the order of the claim.
    seconds : time that sampling and judging took.
    as_expected : False where the claim fails the run.
    notes : one line for each thing that a reader should know beside the verdicts.
    unexpected : the forms, "printed" or "corrected", that fail the run.
    """

    claim: Claim
    printed: Verdict | None
    corrected: Verdict | None
    controls: tuple[tuple[str, Verdict], ...]
    seconds: float
    as_expected: bool
    notes: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def forms(self) -> tuple[tuple[str, Form, Verdict], ...]:
        """Return name, form and verdict of the forms that the claim has."""
        pairs = (
            (name, form, getattr(self, name)) for name, form in self.claim.forms.items()
        )
        return tuple(
            (name, form, verdict)
            for name, form, verdict in pairs
            if verdict is not None
        )


def rejected(verdict: Verdict) -> bool:
    """Tell whether the verdict on a control shows that the check has power: refuted, by finite statistics."""
    return verdict.status == "refuted" and not count_not_finite(verdict)


def count_not_finite(verdict: Verdict) -> int:
    """Return how many statistics behind a verdict are not finite."""
    return int(verdict.facts.get("not_finite", 0))

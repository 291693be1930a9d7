"""What the five papers say, as data: claims, how each is tried at a small size, and the rule that gives its verdict."""

from sememekit.claims.chain import Step, result_names, steps_of
from sememekit.claims.claims import Arm, ClaimFile, DataSet, PaperClaim, claims_folder, load_claims
from sememekit.claims.results import Point, RunResult, read_results
from sememekit.claims.verdict import VERDICTS, ClaimResult, judge

__all__ = [
    "VERDICTS",
    "Arm",
    "ClaimFile",
    "ClaimResult",
    "DataSet",
    "PaperClaim",
    "Point",
    "RunResult",
    "Step",
    "claims_folder",
    "judge",
    "load_claims",
    "read_results",
    "result_names",
    "steps_of",
]

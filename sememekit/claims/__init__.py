"""What the five papers say, as data: claims, how each is tried at a small size, and the rule that gives its verdict."""

from sememekit.claims.chain import Step, Timing, result_names, steps_of, timing_names, timings_of
from sememekit.claims.claims import Arm, ClaimFile, DataSet, PaperClaim, claims_folder, load_claims, paper_of
from sememekit.claims.results import Point, RunResult, UpdateTimes, read_results, read_times
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
    "Timing",
    "UpdateTimes",
    "claims_folder",
    "judge",
    "load_claims",
    "paper_of",
    "read_results",
    "read_times",
    "result_names",
    "steps_of",
    "timing_names",
    "timings_of",
]

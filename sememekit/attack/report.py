"""Results of an attack, and of a comparison of two."""

from pydantic import ConfigDict, Field

from sememekit.config import Record
from sememekit.measure.attack_rates import AttackRates, Coverage, Difference, Validity
from sememekit.measure.proxies import Proxy


class AttackReport(Record):
    """Results of an attack."""

    model_config = ConfigDict(allow_inf_nan=True)

    folder: str
    victim: str
    data: str
    preset: str
    """The published setup of the settings, from the recipe."""
    goal: str
    search: str
    candidates: str
    counting: str
    """The rule for counting queries; ``query_budget`` for each example, 0 for none."""
    query_budget: int
    segmentation: str
    """Method by which texts were cut into words that may be replaced."""
    notes: tuple[str, ...]
    """Constraints in force, and filters that were off."""
    warnings: tuple[str, ...]
    """Reasons to distrust the figures."""
    coverage: Coverage
    rates: AttackRates
    perplexity_before: float | None
    perplexity_after: float | None
    """perplexity_before, perplexity_after: of the changed fields of the successes, under the language model; None without."""
    reasons: dict[str, int]
    """Reasons why examples were skipped, failed, had nothing to try or ended in an error, with the number of each."""
    queries: int
    """Counted over all examples; ``texts_asked``, ``calls`` and ``seconds`` are of this call of the command."""
    texts_asked: int
    calls: int
    seconds: float
    stopped: bool
    """True if a signal ended it; ``resume_command`` continues it."""
    resume_command: str
    signature: str
    """Data, examples, settings and files, without the victim; rates with equal signatures can be compared."""
    targeted: bool = False
    """True if examples have a target label, so that any other wrong label is a failure."""
    texts_cut: int = 0
    words_cut: int = 0
    """texts_cut, words_cut: texts that the victim truncates, and their words behind the cut, which are not attacked."""
    refused_by_standard: dict[str, int] = Field(default_factory=dict)
    """Number of successes that each unused constraint of the preset ``standard`` would refuse; ``refused_by_any``: by at least
    one of them, None under ``standard``."""
    refused_by_any: int | None = None
    refused_substitutes: dict[str, int] = Field(default_factory=dict)
    """Number of substitutes that each constraint refused, after the constraints before it."""
    proxies: tuple[Proxy, ...] = ()
    """Automatic measures of the changed texts, which are no ratings."""
    validity: Validity | None = None
    """Validity of the successes by raters (``--ratings``); None without."""


class AttackComparison(Record):
    """Two attacks on the same examples."""

    first: str
    second: str
    common: int
    """Examples that both finished without an error."""
    only_one: int
    """Left-out examples, which only one side has or which ended in an error on a side. If both sides classified such an example
    before the error, accuracy and accuracy under attack still count it."""
    unlike: dict[str, tuple[str, str]]
    """Settings that differ between the two, and may cause differences of rates."""
    rows: tuple[Difference, ...]
    """The differences, the first minus the second."""

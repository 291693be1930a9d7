"""Results of an attack, and of a comparison of two."""

from pydantic import ConfigDict, Field

from sememekit.config import Record
from sememekit.measure.attack_rates import AttackRates, Coverage, Difference, Validity
from sememekit.measure.proxies import Proxy


class AttackReport(Record):
    """Results of an attack.

    Attributes:
        preset: the published setup of the settings, from the recipe.
        targeted: whether examples have a target label, so that any other wrong label is a failure.
        segmentation: how texts were cut into words that may be replaced.
        texts_cut, words_cut: texts that the victim truncates, and their words behind the cut, which are not attacked.
        notes: constraints in force, and filters that were off.
        warnings: reasons to distrust the figures.
        counting: the rule for counting queries; ``query_budget`` for each example, 0 for none.
        perplexity_before, perplexity_after: of the changed fields of the successes, under the language model; None without.
        reasons: why examples were skipped, failed, had nothing to try or ended in an error, with how often.
        queries: counted over all examples; ``texts_asked``, ``calls`` and ``seconds`` are of this call of the command.
        stopped: whether a signal ended it; ``resume_command`` continues it.
        refused_by_standard: number of successes that each unused constraint of the preset ``standard`` would refuse;
            ``refused_by_any``: by at least one of them, None under ``standard``.
        refused_substitutes: number of substitutes that each constraint refused, after the constraints before it.
        proxies: automatic measures of the changed texts, which are no ratings.
        validity: validity of the successes by raters (``--ratings``); None without.
        signature: data, examples, settings and files, without the victim; rates with equal signatures can be compared.
    """

    model_config = ConfigDict(allow_inf_nan=True)

    folder: str
    victim: str
    data: str
    preset: str
    goal: str
    search: str
    candidates: str
    counting: str
    query_budget: int
    segmentation: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    coverage: Coverage
    rates: AttackRates
    perplexity_before: float | None
    perplexity_after: float | None
    reasons: dict[str, int]
    queries: int
    texts_asked: int
    calls: int
    seconds: float
    stopped: bool
    resume_command: str
    signature: str
    targeted: bool = False
    texts_cut: int = 0
    words_cut: int = 0
    refused_by_standard: dict[str, int] = Field(default_factory=dict)
    refused_by_any: int | None = None
    refused_substitutes: dict[str, int] = Field(default_factory=dict)
    proxies: tuple[Proxy, ...] = ()
    validity: Validity | None = None


class AttackComparison(Record):
    """Two attacks on the same examples.

    Attributes:
        common: examples that both finished without an error.
        only_one: left-out examples, which only one side has or which ended in an error on a side. If both sides classified such
            an example before the error, accuracy and accuracy under attack still count it.
        unlike: settings that differ between the two, and may cause differences of rates.
        rows: the differences, the first minus the second.
    """

    first: str
    second: str
    common: int
    only_one: int
    unlike: dict[str, tuple[str, str]]
    rows: tuple[Difference, ...]

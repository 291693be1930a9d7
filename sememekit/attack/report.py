"""Results of an attack, and of a comparison of two."""

from pydantic import ConfigDict, Field

from sememekit.config import Record
from sememekit.measure.attack_rates import AttackRates, Coverage, Difference, Validity


class AttackReport(Record):
    """Results of an attack.

    Attributes:
        preset: what the settings stand for, as the recipe says.
        targeted: whether examples have a label that they are to be turned to, so that another wrong label is no success.
        segmentation: how texts were cut into words that may be replaced.
        texts_cut, words_cut: texts that the victim reads only in part, and their words behind the cut, which are not attacked.
        notes: constraints in force, and filters that were off.
        warnings: what limits what the figures say.
        counting: the rule by which queries are counted; ``query_budget`` of each example, 0 for none.
        perplexity_before, perplexity_after: of the changed fields of the successes, under the language model; None without.
        reasons: why examples were skipped, failed, had nothing to try or ended in an error, with how often.
        queries: counted over all examples; ``texts_asked``, ``calls`` and ``seconds`` are of this call of the command.
        stopped: whether a signal ended it; ``resume_command`` continues it.
        refused_by_standard: successes that the preset ``standard`` would refuse, by each of its constraints that was not in
            force; ``refused_by_any`` by one or more of them, None under ``standard``.
        validity: what raters said of the successes (``--ratings``); None without.
        signature: of all but the victim: data, examples, settings and the files behind them. Rates compare where it is equal.
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
    validity: Validity | None = None


class AttackComparison(Record):
    """Two attacks on the same examples.

    Attributes:
        common: examples that both finished without an error.
        only_one: examples that one side alone has, or that ended in an error on a side; they are left out. Accuracy and
            accuracy under attack still count examples with an error that both sides classified.
        unlike: settings that differ between the two, which a difference of rates may come from.
        rows: the differences, the first minus the second.
    """

    first: str
    second: str
    common: int
    only_one: int
    unlike: dict[str, tuple[str, str]]
    rows: tuple[Difference, ...]

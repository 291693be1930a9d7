"""Headline generation."""

from typing import ClassVar, Literal, final

from pydantic import Field

from sememekit.data.prepared import PreparedData
from sememekit.measure.rouge import PRESETS, PRESETS_OF_DATASETS, RougeSettings, rouge, sees
from sememekit.tasks.base import PrimaryMetric
from sememekit.tasks.seq2seq import SequenceToSequence
from sememekit.tasks.writing import hypothesis_words, originals_of
from sememekit.text.scripts import HAN


@final
class HeadlineWriter(SequenceToSequence):
    """Headline generation (Sec. 4.2, Gu et al. 2018; Sec. 5, Shen et al. 2017), from an article or its first sentence."""

    scored_with: ClassVar[Literal["rouge", "bleu"]] = "rouge"

    class Settings(SequenceToSequence.Settings):
        checkpoint_by: Literal["nll", "rouge"] = "nll"
        """Validation metric that chooses the best weights: "nll", the likelihood of the references, or "rouge", ROUGE-L of
        generated texts by the usual rule of the data. Word accuracy is not offered (see Gu et al. 2018, erratum)."""
        validation_beam: int = Field(default=1, ge=1)
        """Beam size on validation; 1 is greedy."""

    settings: Settings

    @property
    def metric(self) -> PrimaryMetric:
        return PrimaryMetric("rougeL", lower_is_better=False) if self.settings.checkpoint_by == "rouge" else super().metric

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        metrics = super().evaluate(data, split)
        if self.settings.checkpoint_by != "rouge":
            return metrics
        search = self.search.model_copy(update={"beam_size": self.settings.validation_beam, "num_best": 1})
        examples, originals = data.examples(split), list(originals_of(data, split))
        found = self.write([examples.text(index, 0) for index in range(len(examples))], search)
        texts = [
            " ".join(hypothesis_words(self.vocabulary, best[0], own.source, search)) if best else ""
            for best, own in zip(found, originals, strict=True)
        ]
        report = rouge(texts, [own.references for own in originals], rouge_settings(data)[0][1], resamples=1)
        return metrics | {name: report[name] for name in report.values}

    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        return super().unigram_baseline(data, split) | {"rougeL": 1e-4}  # no more than by chance


def rouge_settings(data: PreparedData) -> list[tuple[str, RougeSettings]]:
    """Return names and settings of the usual ROUGE of these data, the main one first.

    Other data, and texts that the usual ROUGE cannot tokenize, are scored by characters if most target words are Chinese.
    Otherwise the units are words of rouge-score, or words between blanks if its tokenizer drops most letters."""
    names = PRESETS_OF_DATASETS.get(data.signature.dataset, ())
    visible = sees(RougeSettings(), data.vocabulary.tokens)
    if names and (visible or sees(PRESETS[names[0]], data.vocabulary.tokens)):
        return [(name, PRESETS[name]) for name in names]
    counts = data.vocabulary.counts.tolist()
    chinese = sum(count for word, count in zip(data.vocabulary.tokens, counts, strict=True) if HAN.search(word))
    if 2 * chinese > sum(counts):
        return [("characters", RougeSettings(unit="character"))]
    return [("words", RougeSettings(tokenizer="rouge-score" if visible else "white space"))]

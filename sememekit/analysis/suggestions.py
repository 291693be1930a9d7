"""Suggested sememes for the words of prepared data without annotation; word vectors of a run or a file."""

from collections.abc import Sequence
from pathlib import Path

from sememekit.data.prepared import PreparedData
from sememekit.data.segmenters import words_of_pieces
from sememekit.errors import ConfigError, DataError
from sememekit.runs.run import Run
from sememekit.sememes import Side, build_graph, open_lexicons
from sememekit.sememes.suggesting import SuggestReport, suggest
from sememekit.text.vectors import WordVectors, read_vectors


def suggest_for(
    data: Path | Sequence[str], sources: Sequence[str], side: Side, vectors: WordVectors | None = None, top: int = 5
) -> SuggestReport:
    """Suggestions for words, or for words of prepared data that the sources lack, with counts and examples."""
    if not isinstance(data, Path):
        return suggest(data, sources, side=side, vectors=vectors, top=top)
    prepared = PreparedData.open(data)
    words_of = words_of_pieces(prepared.signature, prepared.vocabulary.tokens)
    graph = build_graph(prepared.vocabulary, open_lexicons(sources, side), words=words_of)
    words = [entry.word for entry in graph.entries() if not entry.is_annotated]
    if not words:
        raise DataError(f"{data}: {', '.join(sources)} have sememes for all of its words; there is nothing to suggest")
    counts = dict(zip(prepared.vocabulary.tokens, prepared.vocabulary.counts.tolist(), strict=True))
    contexts = prepared.first_contexts(words)
    return suggest(words, sources, side=side, vectors=vectors, counts=counts, contexts=contexts, top=top)


def vectors_at(path: Path) -> WordVectors:
    """Read the input vectors of a trained run, or the vectors of a text file."""
    if not (path / "plan.json").is_file():
        return read_vectors(path)
    run = Run.open(path, device="cpu")
    embedding = getattr(run.task, "embedding", None)
    if embedding is None or len(embedding.weight) != len(run.vocabulary):
        raise ConfigError(f"--vectors {path}: this run has no vectors of words; give another run, or a file of vectors")
    return WordVectors(run.vocabulary.tokens, embedding.weight.detach().float().numpy(), run.weights_sha256)

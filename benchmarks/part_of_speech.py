"""Part of speech of a word in its sentence, as a language model guesses it from the words on the left.

    python benchmarks/part_of_speech.py --corpora CORPORA --out OUT [--results FILE] [--sets sst2 headlines]

A constraint of attacks could refuse substitutes of another part of speech than the word has in its sentence. No tagger is at
hand, so the language model of attack_presets.py chooses between two parts of speech: by the probability of all words that the
lexicon knows with this part alone, divided by their share of the training text. Words of one part of speech are the gold: the
word itself is left out of its part. Balanced accuracy is the mean of the shares of both parts that are right; 50 % is chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import jieba
import torch
from attack_presets import headlines, sentences
from measuring import Cell, cell_arguments, fill

from sememekit.attack import Document, read_examples
from sememekit.runs.run import Run
from sememekit.runs.stream_nats import with_context
from sememekit.sememes import open_lexicons
from sememekit.sememes.substitutes import Inflections

PARTS: Final = {"sst2": ("n", "v", "a", "r"), "headlines": ("N", "V", "ADJ", "ADV")}
"""The four most frequent parts of speech of each lexicon."""
EXAMPLES: Final = 600


def main() -> None:
    """Measure each set of texts that has no result yet."""
    parser = cell_arguments(__doc__ or "", "part-of-speech")
    parser.set_defaults(seeds=[1])
    parser.add_argument("--sets", nargs="*", default=list(PARTS))
    given = parser.parse_args()
    fill(given.results, cells(given.corpora, given.out, given.sets))


def cells(corpora: Path, out: Path, sets: list[str]) -> Iterator[Cell]:
    """Yield each set of texts with its measurement."""
    for name in sets:
        yield name, 1, partial(measured, corpora, out, name)


@torch.no_grad()
def measured(corpora: Path, out: Path, name: str) -> dict[str, Any]:
    """Balanced accuracy of each pair of parts of speech, and how many words have several parts."""
    texts = (sentences if name == "sst2" else headlines)(corpora, out, 1)
    run = Run.open(texts.language_model, device="cpu")
    task: Any = run.task.train(mode=False)
    vocabulary, end = run.vocabulary, run.vocabulary.end_id if run.signature.end_of_sentence else None
    parts_of = parts_by(texts.candidates)
    alone = {
        part: torch.tensor([number for number, word in enumerate(vocabulary.tokens) if parts_of(word) == {part}])
        for part in PARTS[name]
    }
    counts = torch.tensor(vocabulary.counts, dtype=torch.float64)
    usual = {part: (counts[ids].sum() / counts.sum()).log() for part, ids in alone.items()}
    cut = None if name == "sst2" else lambda text: [word for word in jieba.cut(text, HMM=False) if word.strip()]
    right, of, several = Counter[tuple[str, ...]](), Counter[tuple[str, ...]](), Counter[bool]()
    for example in read_examples(texts.file)[0][:EXAMPLES]:
        words = [word.text for word in Document.read(example.fields, cut).words]
        ids = vocabulary.encode(word if word in vocabulary else word.lower() for word in words).tolist()
        stream = torch.tensor(with_context(ids, end))[:, None]
        hidden, _ = task.contexts(stream[:-1], task.encoder.start(1))
        logs = task.decoder.log_probs(hidden[:, 0]).double()
        for word, number, row in zip(words[len(ids) - len(logs) :], ids[len(ids) - len(logs) :], logs, strict=True):
            parts = parts_of(word)
            several[len(parts) > 1] += bool(parts)
            if len(parts) == 1 and (own := next(iter(parts))) in alone:
                score = {part: row[known[known != number]].logsumexp(0) - usual[part] for part, known in alone.items()}
                for other in alone.keys() - parts:
                    pair = (*sorted((own, other)), own)
                    right[pair] += bool(score[own] > score[other])
                    of[pair] += 1
    pairs = {
        f"{one} {two}": (right[one, two, one] / of[one, two, one] + right[one, two, two] / of[one, two, two]) / 2
        for one, two in combinations(sorted(alone), 2)
    }
    return {"balanced_accuracy": pairs, "words": several.total(), "several_parts": several[True]}


def parts_by(candidates: dict[str, Any]) -> Callable[[str], set[str]]:
    """Return a function from a word to its parts of speech in the lexicon."""
    [lexicon] = open_lexicons(candidates["sources"])
    inflections = Inflections.open(candidates["lemmas"]) if "lemmas" in candidates else None
    found: dict[str, set[str]] = {}

    def parts(word: str) -> set[str]:
        if word not in found:
            forms = (word, word.lower(), *(inflections.lemmas(word.lower()) if inflections is not None else ()))
            known = (form for form in dict.fromkeys(forms) if form in lexicon.words)
            found[word] = {sense.part_of_speech for form in known for sense in lexicon.senses(form)}
        return found[word]

    return parts


if __name__ == "__main__":
    main()

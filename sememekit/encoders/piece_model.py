"""A causal or masked language model from a Hugging Face folder, and its probabilities of pieces of words."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from inspect import signature
from typing import Any, Final, TypeVar, final

import torch
from torch import Tensor, nn

from sememekit.errors import ConfigError
from sememekit.files import needed, read_object
from sememekit.text.huggingface import (
    PREFIX,
    HuggingFacePieces,
    load_published,
    model_folder,
    positions_of,
    special_tokens,
)

LONGEST: Final = 512  # the most pieces in one call of a model
_ROWS_AT_ONCE: Final = 16
_NUMBERS_AT_ONCE: Final = 1 << 26  # most logits of one call
_BYTES_AT_ONCE: Final = 1 << 28  # of copies of what a model keeps of a text

After = Callable[[Sequence[tuple[int, Sequence[int]]]], Tensor]
_Row = TypeVar("_Row")


@final
class PieceModel(nn.Module):
    """A language model of ``transformers`` as it was published, with its tokenizer and its own output layer.

    >>> model = PieceModel("models/bert")
    >>> for rows, log_probs_NP, further in model.after([[12, 7], [12]]): ...  # of the pieces that come next
    >>> scores = model.in_sentence([12, 7], [[3], [4, 5]], [9])  # of [3] and [4, 5] between them

    The model is masked if its configuration names ``...ForMaskedLM`` or ``...ForPreTraining``, else causal; ``limit`` is the
    number of pieces that it reads at once. Raises ConfigError: as ``load_published``, a causal model that looks ahead, a masked
    one whose tokenizer names no mask, or with ``causal`` any masked one."""

    def __init__(self, path: str, *, causal: bool = False) -> None:
        super().__init__()
        use = f"{PREFIX}{path}"
        folder = model_folder(path, use)
        self.tokenizer = HuggingFacePieces.of_folder(path, use)
        names = read_object(folder / "config.json", ConfigError).get("architectures")
        named = map(str, names) if isinstance(names, list) else ()
        self.masked = any(name.endswith(("MaskedLM", "PreTraining")) for name in named)
        kind = "AutoModelForMaskedLM" if self.masked else "AutoModelForCausalLM"
        self.model: Any = load_published(folder, use, kind, "language model", self.tokenizer.ordinary)
        self.limit = min(LONGEST, positions_of(self.model.config) or LONGEST) - 2  # RoBERTa counts its positions from 2
        around, end = self.tokenizer.around, self.tokenizer.end_id
        self._start: tuple[int, ...] = around[:1] if self.masked else self.tokenizer.start
        self._alone = self._start or (self.tokenizer.line_end if end is None else (end,))
        self._behind: tuple[int, ...] = ()
        self._window = 0  # pieces of a text that stay usable when more are read after a part of it; 0 if none do
        ahead = f"{use}: its predictions depend on the words that follow; take a causal language model, such as a GPT"
        if self.masked:
            if causal:
                raise ConfigError(ahead)
            if (mask := self.tokenizer.id(special_tokens(folder, "mask_token")["mask_token"] or "")) is None:
                raise ConfigError(f"{use}: a masked model, whose tokenizer names no mask_token; give one that does")
            self._behind = (mask, *around[1:])
            return
        one, two = self._logits([[1, 2, 3, 4, last][-self.limit :] for last in (0, 1)])
        if not torch.allclose(one[:-1], two[:-1], atol=1e-3, rtol=1e-3):
            raise ConfigError(ahead)
        if not self._alone:
            raise ConfigError(
                f"{use}: its tokenizer names no piece that begins or ends a text and drops line ends, so nothing predicts a "
                "first word; name a bos_token in tokenizer_config.json"
            )
        self._window = self._usable_window()

    def _usable_window(self) -> int:
        """Return ``_window``: tried on a few pieces, since some models keep nothing, or place later pieces by their number."""
        text, rows, size = [1, 2, 3, 4], [[3], [2, 1]], min(4, self.limit - 2)
        if size < 2 or "position_ids" not in signature(self.model.forward).parameters:
            return 0
        try:
            _, kept = next(self._read(text[:size]))
            found = list(self._continued(kept, size, [(1, rows[0]), (2, rows[1])]))
        except (AttributeError, TypeError, ValueError, RuntimeError, IndexError, StopIteration):
            return 0
        plain = self._logits([[*text[:1], *rows[0]], [*text[:2], *rows[1]]])
        same = all(torch.allclose(one, two[-len(one) :], atol=1e-4, rtol=1e-4) for one, two in zip(found, plain, strict=True))
        configuration = self.model.config.get_text_config()
        return int(getattr(configuration, "sliding_window", None) or LONGEST + self.limit) if same else 0

    @torch.no_grad()
    def _logits(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """Yield (L, P) of each row of L pieces; padding stands on the right and is masked."""
        self._check(rows)
        for group in self._groups(rows, [len(row) for row in rows]):
            ids_NL, real_NL = self._padded(group)
            found = self.model(input_ids=ids_NL, attention_mask=real_NL).logits
            yield from (logits[: len(row)] for logits, row in zip(found, group, strict=True))

    @torch.no_grad()
    def _read(self, text: Sequence[int]) -> Iterator[tuple[Tensor, Any]]:
        """Yield (n, P) logits of a text in blocks of positions, with what the model keeps of the text so far."""
        self._check([text])
        kept = needed("transformers", PREFIX).DynamicCache()
        size = max(1, _NUMBERS_AT_ONCE // self.model.get_input_embeddings().num_embeddings)
        for begin in range(0, len(text), size):
            ids_1L, _ = self._padded([text[begin : begin + size]])
            found = self.model(input_ids=ids_1L, past_key_values=kept, use_cache=True)
            if found.past_key_values is not kept:
                raise TypeError("the model keeps nothing of a text")
            yield found.logits[0], kept

    @torch.no_grad()
    def _continued(self, kept: Any, size: int, rows: Sequence[tuple[int, Sequence[int]]]) -> Iterator[Tensor]:
        """Yield (L, P) logits of rows of L pieces, each after the first pieces of a text of ``size`` pieces, of which ``kept``
        is what the model keeps; a row is the number of these first pieces, and its own pieces."""
        self._check([row for _, row in rows])
        bytes_of_text = sum(layer.keys.nbytes + layer.values.nbytes for layer in kept.layers)
        for group in self._groups(rows, [len(row) for _, row in rows], most=max(1, _BYTES_AT_ONCE // max(1, bytes_of_text))):
            ids_NL, real_NL = self._padded([row for _, row in group])
            firsts_N1 = torch.tensor([[first] for first, _ in group], device=ids_NL.device)
            seen_NL = (torch.arange(size, device=ids_NL.device)[None] < firsts_N1).long()
            copied = deepcopy(kept)
            copied.batch_repeat_interleave(len(group))
            found = self.model(
                input_ids=ids_NL,
                attention_mask=torch.cat([seen_NL, real_NL], dim=1),
                position_ids=firsts_N1 + torch.arange(ids_NL.shape[1], device=ids_NL.device),
                past_key_values=copied,
            ).logits
            yield from (logits[: len(row)] for logits, (_, row) in zip(found, group, strict=True))

    def _groups(self, rows: Sequence[_Row], sizes: Sequence[int], most: int = 64) -> Iterator[list[_Row]]:
        """Divide rows so that a group has at most ``_NUMBERS_AT_ONCE`` logits."""
        group, longest = list[_Row](), 0
        for row, size in zip(rows, sizes, strict=True):
            longest = max(longest, size)
            many = (len(group) + 1) * longest * self.model.get_input_embeddings().num_embeddings > _NUMBERS_AT_ONCE
            if group and (many or len(group) == most):
                yield group
                group, longest = [], size
            group.append(row)
        if group:
            yield group

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """(N, L) pieces with zeros on the right, and 1 where a piece is."""
        longest, device = max(map(len, rows)), next(self.parameters()).device
        ids_NL = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=device)
        real_NL = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
        return ids_NL, real_NL

    def _check(self, rows: Iterable[Sequence[int]]) -> None:
        """Refuse special pieces that the tokenizer has and the model has no row for, if a text holds one."""
        size = self.model.get_input_embeddings().num_embeddings
        if (number := max((piece for row in rows for piece in row), default=0)) >= size:
            raise ConfigError(
                f"the text holds {self.tokenizer.names[number]!r}, and the model has no row for this special piece; take it out"
            )

    def after(self, lefts: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Tensor, After]]:
        """Predict the piece after each row of pieces; a masked model fills a mask at its end.

        Yield for a part of the rows their numbers, the log-probabilities (n, P) after them, and a function that predicts
        further: rows, each as its number and pieces that follow it -> (m, P). Rows with a common beginning, such as all
        contexts of one text, are read in one pass. The pieces that have no row in the model have no column."""
        room = self.limit - len(self._start) - len(self._behind)
        rows = [(*(self._start if left else self._alone), *left[-room:]) for left in lefts]

        def apart(wanted: Sequence[tuple[int, Sequence[int]]]) -> Tensor:
            begins = ((self._start if lefts[number] else self._alone, lefts[number], more) for number, more in wanted)
            begun = [[*begin, *[*left, *more][-room:], *self._behind] for begin, left, more in begins]
            return torch.stack([one[-max(1, len(self._behind))].log_softmax(-1) for one in self._logits(begun)])

        order, texts = sorted(range(len(rows)), key=rows.__getitem__, reverse=True), list[list[int]]()
        for number in order:  # a row stands right behind the longer rows that begin with it
            if texts and self._window and rows[texts[-1][0]][: len(rows[number])] == rows[number]:
                texts[-1].append(number)
            else:
                texts.append([number])
        if not self._window:
            for begin in range(0, len(order), _ROWS_AT_ONCE):
                part = order[begin : begin + _ROWS_AT_ONCE]
                yield part, apart([(number, ()) for number in part]), apart
            return
        for numbers in texts:
            text, begin = rows[numbers[0]], 0

            for logits_LP, kept in self._read(text):
                end = begin + len(logits_LP)
                here = [number for number in numbers if begin < len(rows[number]) <= end]

                def further(wanted: Sequence[tuple[int, Sequence[int]]], kept: Any = kept, size: int = end) -> Tensor:
                    if size + max(len(more) for _, more in wanted) > min(self._window, self.limit):
                        return apart(wanted)
                    own = [(len(rows[number]), more) for number, more in wanted]
                    return torch.stack([one[-1].log_softmax(-1) for one in self._continued(kept, size, own)])

                if here:
                    places = torch.tensor([len(rows[number]) - 1 - begin for number in here], device=logits_LP.device)
                    yield here, logits_LP[places].log_softmax(-1), further
                begin = end

    def of_text(self, pieces: Sequence[int]) -> list[float] | None:
        """Return the log-probability of each piece of a text, in one pass; None if the model is masked or the text too long."""
        whole = [*self._alone, *pieces]
        if self.masked or len(whole) > self.limit:
            return None
        [logits_LP] = self._logits([whole])
        return _each(logits_LP[len(self._alone) - 1 : -1], pieces).tolist()

    def in_sentence(self, left: Sequence[int], middles: Sequence[Sequence[int]], right: Sequence[int]) -> list[float]:
        """Score rows of pieces, the ``middles``, between the pieces before and after.

        Causal model: the score is the log-probability of the middle and all pieces after it, summed over pieces. Masked model:
        masks replace the pieces of the middle, and the score is the mean log-probability of these pieces (Hou et al. 2020 take
        the mean of logits). A sentence that is too long is cut on both sides."""
        room = self.limit - max(map(len, middles)) - len(self._alone) - len(self._behind)
        left = left[max(0, len(left) - max(room - len(right), room // 2)) :]
        right, begin = right[: room - len(left)], [*self._alone, *left]
        if self.masked:
            mask, *end = self._behind
            sizes = sorted({len(middle) for middle in middles})
            found = self._logits([[*begin, *[mask] * size, *right, *end] for size in sizes])
            filled = {size: logits[len(begin) :][:size] for size, logits in zip(sizes, found, strict=True)}
            return [float(_each(filled[len(middle)], middle).mean()) for middle in middles]
        rows = [[*middle, *right] for middle in middles]
        if len(begin) + max(map(len, rows)) > self._window:
            every = self._logits([[*begin, *row] for row in rows])
            return [float(_each(one[len(begin) - 1 : -1], row).sum()) for row, one in zip(rows, every, strict=True)]
        *_, (logits_LP, kept) = self._read(begin)
        first = logits_LP[-1].log_softmax(-1)
        sums = [float(first[row[0]]) for row in rows]
        longer = [number for number, row in enumerate(rows) if len(row) > 1]
        found = self._continued(kept, len(begin), [(len(begin), rows[number][:-1]) for number in longer])
        for number, one in zip(longer, found, strict=False):
            sums[number] += float(_each(one, rows[number][1:]).sum())
        return sums


def _each(logits_LP: Tensor, pieces: Sequence[int]) -> Tensor:
    """(L,) log-probabilities of pieces in float64."""
    chosen = logits_LP.gather(1, torch.tensor(pieces, device=logits_LP.device)[:, None])[:, 0]
    return chosen.double() - logits_LP.logsumexp(-1).double()

"""A causal or masked language model from a Hugging Face folder, and its probabilities of pieces of words."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, final

import torch
from torch import Tensor, nn

from sememekit.errors import ConfigError
from sememekit.files import read_object
from sememekit.text.huggingface import PREFIX, HuggingFacePieces, load_published, local_folder, special_tokens

LONGEST: Final = 512  # the most pieces in one call of a model
_ROWS_AT_ONCE: Final = 16


@final
class PieceModel(nn.Module):
    """A language model of ``transformers`` as it was published, with its tokenizer and its own output layer.

    >>> model = PieceModel("models/bert")
    >>> log_probs_NP = model.after([[12, 7]])                    # of the piece that comes next
    >>> scores = model.in_sentence([12, 7], [[3], [4, 5]], [9])  # of [3] and [4, 5] between them

    The model is masked if its configuration names ``...ForMaskedLM`` or ``...ForPreTraining``, else causal; ``limit`` is the
    number of pieces that it reads at once. Raises ConfigError: as ``load_published``, a causal model that looks ahead, a masked
    one whose tokenizer names no mask, or with ``causal`` any masked one."""

    def __init__(self, path: str, *, causal: bool = False) -> None:
        super().__init__()
        use = f"{PREFIX}{path}"
        folder = local_folder(path, use)
        self.tokenizer = HuggingFacePieces.of_folder(path, use)
        names = read_object(folder / "config.json", ConfigError).get("architectures") or ()
        self.masked = any(name.endswith(("MaskedLM", "PreTraining")) for name in names)
        kind = "AutoModelForMaskedLM" if self.masked else "AutoModelForCausalLM"
        self.model: Any = load_published(folder, use, kind, "language model")
        positions = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        self.limit = min(LONGEST, positions or LONGEST) - 2  # RoBERTa counts its positions from 2
        around, end = self.tokenizer.around, self.tokenizer.end_id
        self._start: tuple[int, ...] = around[:1] if self.masked else self.tokenizer.start
        self._alone = self._start or (() if end is None else (end,))
        self._behind: tuple[int, ...] = ()
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

    @torch.no_grad()
    def _logits(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """Yield (L, P) of each row of L pieces; padding stands on the right and is masked."""
        device = next(self.parameters()).device
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            group = rows[begin : begin + _ROWS_AT_ONCE]
            longest = max(map(len, group))
            ids_NL = torch.tensor([[*row, *[0] * (longest - len(row))] for row in group], device=device)
            real_NL = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in group], device=device)
            found = self.model(input_ids=ids_NL, attention_mask=real_NL).logits
            yield from (logits[: len(row)] for logits, row in zip(found, group, strict=True))

    def after(self, lefts: Sequence[Sequence[int]]) -> Tensor:
        """(N, P) log-probabilities of the piece after each row of pieces; a masked model fills a mask at its end."""
        room = self.limit - len(self._start) - len(self._behind)
        rows = [[*(self._start if left else self._alone), *left[-room:], *self._behind] for left in lefts]
        if not min(map(len, rows)):
            raise ConfigError("the tokenizer names no piece that begins or ends a text, so nothing predicts a first word")
        return torch.stack([one[-max(1, len(self._behind))].double().log_softmax(-1) for one in self._logits(rows)])

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
            return [_chosen(filled[len(middle)], middle) / len(middle) for middle in middles]
        first = max(1, len(begin))  # without a beginning nothing predicts the first piece
        rows = [[*begin, *middle, *right] for middle in middles]
        return [_chosen(one[first - 1 : -1], row[first:]) for row, one in zip(rows, self._logits(rows), strict=True)]


def _chosen(logits_LP: Tensor, pieces: Sequence[int]) -> float:
    logs = logits_LP.double().log_softmax(-1)
    return float(logs.gather(1, torch.tensor(pieces, device=logs.device)[:, None]).sum())

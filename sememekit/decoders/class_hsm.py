"""The class-based softmax (Goodman 2001): first the class of the next word, then the word within it."""

from collections.abc import Mapping
from math import isqrt
from typing import Any, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit.decoders.base import Clustered, Resources, word_vectors
from sememekit.decoders.bias_start import BiasStartSettings, begin_bias, begin_class_bias
from sememekit.errors import ConfigError
from sememekit.layers import Linear, at_least_single
from sememekit.layers.grouped_cross_entropy import Groups, grouped_cross_entropy
from sememekit.word_classes.partition import classes_by_frequency, classes_by_sememes


@final
class ClassHSM(Clustered):
    """p(w | g) = p(c(w) | g) p(w | c(w), g), with each word in exactly one class c(w) (Goodman 2001).

    - p(c | g) = softmax over the C classes of g . u_c + a_c;
    - p(w | c, g) = softmax over the words of c of g . x_w + b_w.

    Classes have equal total frequency (Mikolov et al. 2011), group words that share sememes (``word_classes.partition``), or
    come from a file. No class is padded, so no probability is lost; numbers that the file does not use are left out. A token
    needs the scores of C classes and of the words of one class: about 2 sqrt(V) products instead of V with C = sqrt(V)."""

    class Settings(BiasStartSettings):
        classes: Literal["frequency", "sememes", "file"] = "frequency"
        """Source of the classes: counts, the sememe graph (``--graph``), or a file of clusters (``--clusters``)."""
        num_classes: int | None = Field(default=None, ge=1)
        """C; unset: the integer part of sqrt(V), or the number in the file. Classes by frequency may be fewer."""
        tied: bool = True
        """Share the word vectors with the input embedding, which must be as wide as the contexts; classes have separate
        vectors."""
        bias: bool = True
        """A bias for each word and each class."""

    @classmethod
    def needs(cls, settings: Settings) -> frozenset[str]:
        return frozenset({"sememes": {"graph"}, "file": {"clusters"}}.get(settings.classes, ()))

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.words = word_vectors(resources, "class_hsm", tied=settings.tied)
        self.groups = Groups(_classes(settings, resources))
        self.classes = Linear(resources.width, self.groups.num_groups, bias=settings.bias)
        nn.init.uniform_(self.classes.weight, -0.1, 0.1)
        if settings.bias:
            nn.init.zeros_(self.classes.bias)
        self.bias = nn.Parameter(torch.zeros(len(resources.vocabulary))) if settings.bias else None
        self.bias_start = settings.bias_start

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        begin_class_bias(self.classes.bias, self.bias_start, counts, self.groups.group_of)
        begin_bias(self.bias, self.bias_start, counts)

    def room_for_words(self) -> Mapping[str, Any]:
        return {"classes": "file", "num_classes": None}

    def _choices(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return at_least_single(self.classes(hidden)).log_softmax(dim=-1), hidden

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return torch.stack([*self.nll_parts(hidden, target).values()]).sum(dim=0)

    def nll_parts(self, hidden: Tensor, target: Tensor) -> dict[str, Tensor]:
        rows, words = hidden.reshape(-1, hidden.shape[-1]), target.reshape(-1)
        of_class = functional.cross_entropy(self.classes(rows), self.groups.group_of[words], reduction="none")
        within = grouped_cross_entropy(rows, self.words.weight, self.bias, words, self.groups)
        return {"cluster": of_class.reshape(target.shape), "in_cluster": within.reshape(target.shape)}


def _classes(settings: ClassHSM.Settings, resources: Resources) -> NDArray[np.integer]:
    vocabulary = resources.vocabulary
    count = settings.num_classes or isqrt(len(vocabulary))
    if count > len(vocabulary):
        raise ConfigError(
            f"decoder 'class_hsm': {len(vocabulary)} words cannot fill {count} classes; set decoder.num_classes to at most "
            f"{len(vocabulary)}, or leave it out for {isqrt(len(vocabulary))}"
        )
    if settings.classes == "file":
        assert resources.clusters is not None
        if settings.num_classes is not None:
            raise ConfigError("decoder 'class_hsm': with classes=file the file says how many; leave decoder.num_classes out")
        return resources.clusters
    if settings.classes == "sememes":
        assert resources.graph is not None
        resources.graph.check_vocabulary(vocabulary)
        return classes_by_sememes(resources.graph, count)
    return classes_by_frequency(vocabulary.counts, count)

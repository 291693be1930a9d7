"""The sememe-driven layer written as the equations stand: dense float64, one sense at a time in spirit, no shared work."""

from __future__ import annotations

import torch
from torch import Tensor

from sememekit.decoders.sdlm import SDLM
from sememekit.sememes import SememeGraph


def dense_log_probs(decoder: SDLM, graph: SememeGraph, hidden: Tensor, symmetric: bool) -> Tensor:
    """log p(w) for ``hidden`` (N, H) by Eq. (6) to (11) of Gu et al. 2018. Returns (N, V), differentiable."""
    num_senses, num_sememes = graph.num_senses, graph.num_sememes
    membership = torch.zeros(num_senses, num_sememes, dtype=torch.float64)
    for sense in range(num_senses):
        group = graph.sense_set[sense]
        for edge in range(graph.set_offsets[group], graph.set_offsets[group + 1]):
            membership[sense, graph.set_sememes[edge]] = 1.0
    per_sense = membership.sum(dim=1, keepdim=True)
    per_sememe = membership.sum(dim=0, keepdim=True)
    constant = membership / (per_sense * per_sememe).sqrt() if symmetric else membership / per_sense
    constant = torch.where(membership > 0, constant, torch.zeros(()).double())
    gates = torch.sigmoid(decoder.gate(hidden))
    mixing = decoder.mixing.exp() / decoder.mixing.exp().sum(dim=1, keepdim=True)
    word_of_sense = torch.from_numpy(graph.word_of_sense.copy())
    vectors = decoder.words.weight[word_of_sense]
    logits = torch.zeros(len(hidden), num_senses, dtype=torch.float64)
    for r in range(decoder.bases.shape[0]):
        transformed = hidden @ decoder.bases[r]
        if decoder.settings.context_tanh:
            transformed = transformed.tanh()
        expert = torch.einsum("sk,nk->ns", constant, gates * mixing[:, r])
        logits = logits + expert * (transformed @ vectors.T)
    if decoder.sense_bias is not None:
        logits = logits + decoder.sense_bias
    senses = torch.softmax(logits, dim=1)
    words = torch.zeros(len(hidden), graph.num_words, dtype=torch.float64)
    return words.index_add(1, word_of_sense, senses).log()

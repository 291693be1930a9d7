"""Hugging Face models of a few thousand numbers with tokenizers of their own, made here and written to folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.small_run import write_text

END = "<|endoftext|>"


def write_tokenizer(folder: Path) -> Path:
    """A byte-level BPE tokenizer of 290 pieces, of the sentences of ``small_run`` and some English."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=290, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    text = write_text(folder / "text", 40) / "train.txt"
    lines = text.read_text(encoding="utf-8").splitlines() + ["a good film of a good man", "an old man is in the film"] * 3
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": END, "bos_token": END}), encoding="utf-8")
    return folder


def write_gpt2(folder: Path, *, positions: int = 48, seed: int = 3, **settings: Any) -> Path:
    """A GPT-2 with random weights and that tokenizer."""
    transformers = pytest.importorskip("transformers")
    import torch

    write_tokenizer(folder)
    torch.manual_seed(seed)
    given: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": positions, **settings}
    config = transformers.GPT2Config(vocab_size=290, bos_token_id=0, eos_token_id=0, initializer_range=0.3, **given)
    save_quietly(transformers.GPT2LMHeadModel(config), folder)
    return folder


def write_classifier(folder: Path, labels: Sequence[str], *, positions: int = 12) -> Path:
    """A BERT that classifies texts, with random weights; texts are cut after ``positions`` pieces."""
    transformers = pytest.importorskip("transformers")
    import torch

    write_tokenizer(folder)
    told = {"pad_token": END, "model_max_length": 64, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    torch.manual_seed(2)
    config = transformers.BertConfig(
        vocab_size=290,
        max_position_embeddings=positions,
        id2label=dict(enumerate(labels)),
        initializer_range=0.5,
        pad_token_id=0,
        **sizes,
    )
    save_quietly(transformers.BertForSequenceClassification(config), folder)
    return folder


def write_masked(folder: Path, *, positions: int = 48, seed: int = 3, more: Sequence[str] = ()) -> Path:
    """A BERT with random weights that fills masks, over pieces of words and Chinese characters, also of ``more``."""
    transformers, tokenizers = pytest.importorskip("transformers"), pytest.importorskip("tokenizers")
    import torch

    lines = [*(write_text(folder / "text", 40) / "train.txt").read_text(encoding="utf-8").splitlines(), "a good film", *more]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        lines, tokenizers.trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    )
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"unk_token": "[UNK]", "mask_token": "[MASK]", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=positions, initializer_range=0.5, **sizes
    )
    save_quietly(transformers.BertForMaskedLM(config), folder)
    return folder


def save_quietly(model: Any, folder: Path) -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
    model.save_pretrained(folder)

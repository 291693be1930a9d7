"""A causal language model of transformers with a sememe layer in the place of its softmax.

Copy this file into your project. It is trained by ``Trainer``, writes text by ``generate``, and is saved and read like any
other model of transformers:

>>> config = SememeConfig.of("models/gpt2", Senses.of_tokenizer(tokenizer, "open"))
>>> model = SememeForCausalLM.from_backbone("models/gpt2", config)
>>> model.save_pretrained("mine")
>>> model = SememeForCausalLM.from_pretrained("mine")
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from sememekit.nn import SememeSoftmax, Senses


class SememeConfig(PreTrainedConfig):
    """Configuration of the backbone (``text_config``), and of each piece of the tokenizer its senses.

    A sense is a list of numbers of sememes. They stand in ``config.json``: the layer means something only with them.
    ``logits_with_loss``: whether the model gives ``logits`` beside a loss, too, as ``compute_metrics`` of ``Trainer`` needs.
    """

    model_type = "sememe_causal_lm"
    sub_configs = {"text_config": AutoConfig}  # noqa: RUF012
    keys_to_ignore_at_inference = ["past_key_values"]  # noqa: RUF012

    def __init__(
        self,
        text_config: PreTrainedConfig | dict[str, Any] | None = None,
        sememes: Sequence[str] = (),
        senses: Sequence[Sequence[Sequence[int]]] = (),
        num_bases: int = 5,
        logits_with_loss: bool = False,
        **others: Any,
    ) -> None:
        given = {"model_type": "gpt2"} if text_config is None else text_config
        self.text_config = AutoConfig.for_model(**given) if isinstance(given, dict) else given
        self.sememes, self.senses = list(sememes), [[list(sense) for sense in word] for word in senses]
        self.num_bases, self.logits_with_loss = num_bases, logits_with_loss
        for name in ("eos_token_id", "bos_token_id", "pad_token_id"):
            others.setdefault(name, getattr(self.text_config, name, None))
        others["tie_word_embeddings"] = True  # the layer shares the input embedding; one that is replaced is shared, too
        super().__init__(**others)

    @classmethod
    def of(cls, path: str, senses: Senses | Sequence[Any], **others: Any) -> "SememeConfig":
        """The configuration for the backbone at ``path``; ``senses`` as ``sememekit.nn`` takes them, one word a piece."""
        graph = (senses if isinstance(senses, Senses) else Senses(senses)).graph
        number = {sememe: place for place, sememe in enumerate(graph.sememes)}
        numbers = [
            [[number[sememe] for sememe in sense.sememes] for sense in entry.senses] if entry.is_annotated else []
            for entry in graph.entries()
        ]
        return cls(AutoConfig.from_pretrained(path), graph.sememes, numbers, **others)


class SememeForCausalLM(PreTrainedModel, GenerationMixin):
    """p(next piece) = ``SememeSoftmax`` on the hidden state of any causal backbone, with the word vectors of its embedding."""

    config_class = SememeConfig
    base_model_prefix = "backbone"
    accepts_loss_kwargs = True  # Trainer hands over the number of targets of all accumulated batches

    def __init__(self, config: SememeConfig) -> None:
        super().__init__(config)
        self.backbone = AutoModel.from_config(config.text_config)
        self._set_layer()
        self.post_init()

    @classmethod
    def from_backbone(cls, path: str, config: SememeConfig) -> "SememeForCausalLM":
        """A model that begins with the weights of a trained backbone, and a new layer."""
        model = cls(config)
        model.backbone = AutoModel.from_pretrained(path)
        model._set_layer()
        return model

    def _set_layer(self) -> None:
        words = self.backbone.get_input_embeddings()
        senses = [[[self.config.sememes[k] for k in sense] for sense in word] for word in self.config.senses]
        self.out = SememeSoftmax(
            words.embedding_dim, senses, embedding=words, num_bases=self.config.num_bases, batch_first=True
        )
        [name] = (name for name, module in self.backbone.named_modules() if module is words)
        self._tied_weights_keys = {"out.layer.words.weight": f"backbone.{name}.weight"}

    def _init_weights(self, module: nn.Module) -> None:
        """Backbone and layer have begun already, each in its own way."""

    def get_input_embeddings(self) -> nn.Module:
        return self.backbone.get_input_embeddings()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        num_items_in_batch: Tensor | int | None = None,
        logits_with_loss: bool | None = None,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        """Loss in nats a target where ``labels`` are given, and else log-probabilities of the next pieces.

        Args:
            labels: (B, T) as ``input_ids``, -100 where a target counts for nothing. The loss of T targets at once never makes a
                table of pieces, so ``logits`` is None then by default.
            logits_with_loss: give both; default: as the configuration says.
            logits_to_keep: positions at the end whose log-probabilities are asked for; 0 for all.
            num_items_in_batch: targets that the loss is divided by, where gradients are accumulated over several batches.
        """
        found = self.backbone(input_ids=input_ids, attention_mask=attention_mask, **{"return_dict": True, **others})
        hidden_BTH, loss, logits = found.last_hidden_state, None, None
        with_loss = self.config.logits_with_loss if logits_with_loss is None else logits_with_loss
        if labels is None or with_loss:
            logits = self.out.log_prob(hidden_BTH[:, -logits_to_keep:])
        if labels is not None:
            contexts, wanted = hidden_BTH[:, :-1], labels[:, 1:]
            if num_items_in_batch is None:
                loss = self.out(contexts, wanted).loss
            else:
                loss = self.out.nll(contexts, wanted).sum() / num_items_in_batch
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=found.get("past_key_values"))

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Module:
        """More or fewer pieces at the end. New ones have one sense without sememes; write theirs into ``config.senses`` first.

        Gates, bases and mixing keep what they have learned, and so do the biases of senses that stay.
        """
        old, place = dict(self.out.layer.named_parameters()), {name: k for k, name in enumerate(self.out.sememes)}
        self.backbone.resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        size = self.get_input_embeddings().num_embeddings
        self.config.senses = (self.config.senses + [[] for _ in range(size)])[:size]
        self.config.text_config.vocab_size = size
        self._set_layer()
        self.out.to(self.device, self.dtype)
        known = [(k, place[name]) for k, name in enumerate(self.out.sememes) if name in place]
        with torch.no_grad():
            for name, new in self.out.layer.named_parameters():
                if name in ("gate.weight", "gate.bias", "mixing"):  # a row a sememe; new ones may stand between
                    for k, before in known:
                        new[k] = old[name][before]
                elif name != "words.weight":
                    rows = min(len(new), len(old[name]))
                    new[:rows] = old[name][:rows]
        return self.get_input_embeddings()

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedConfig
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqModelOutput
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple

from ..layers.encoder_decoder import SET_BY_MODEL, DecoderOutput
from ..layers.language_model_head import scored
from ..layers.lstm_kernels import LstmState, packed_order, select_states
from ..layers.recurrent import AdditiveAttention, StackedLstm
from ..layers.token_ids import embed
from ..residual_lstm.modeling_residual_lstm import (
    ResidualLstmForConditionalGeneration,
    ResidualLstmModel,
    ResidualLstmPreTrainedModel,
)
from .configuration_hierarchical_autoencoder import HierarchicalAutoencoderConfig
from .sentences import DecoderRun, HierarchicalCache, SentenceLayout, find_sentences, reverse, spread_rows


@dataclass
class HierarchicalAutoencoderEncoderOutput(BaseModelOutput):
    """Encoder outputs, batch first so that `generate()` can repeat them for every beam.

    Args:
        last_hidden_state: Outputs of the word LSTM at the words, `(batch, source_length, hidden_size)`.
        final_hidden: e_D: h of every layer behind the whole document, `(batch, num_layers, hidden_size)`.
        final_cell: c of the same shape.
        sentence_states: Outputs of the sentence LSTM in the source's order, `(batch, sentences, hidden_size)`; None
            without hierarchy, as are the two below.
        sentence_mask: Which of them are sentences to attend to, `(batch, sentences)`.
        sentence_ends: Position of the last word of each sentence in the source, `(batch, sentences)`.
        hidden_states: On request, the embeddings and the word LSTM's outputs.
    """

    last_hidden_state: Tensor = SET_BY_MODEL
    final_hidden: Tensor = SET_BY_MODEL
    final_cell: Tensor = SET_BY_MODEL
    sentence_states: Tensor = SET_BY_MODEL
    sentence_mask: Tensor = SET_BY_MODEL
    sentence_ends: Tensor = SET_BY_MODEL


class HierarchicalAutoencoderPreTrainedModel(ResidualLstmPreTrainedModel):
    """Weights start, tables are resized and caches made as the residual LSTM's are."""

    config_class = HierarchicalAutoencoderConfig


class HierarchicalAutoencoderEncoder(HierarchicalAutoencoderPreTrainedModel):
    """Words to sentences (equation 5), sentences to the document's vector e_D (equation 6)."""

    def __init__(self, config: HierarchicalAutoencoderConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.words = make_lstm(config)
        self.sentences = make_lstm(config) if config.hierarchy == "sentence" else None
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> HierarchicalAutoencoderEncoderOutput:
        real = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        marks = (self.config.end_of_sentence_token_id, self.config.eos_token_id)
        found = find_sentences(input_ids, real, marks, whole=self.sentences is None)
        inputs = embed(self.embed_tokens, input_ids, "input_ids")
        outputs, vectors, state = self._read_words(inputs, found)
        hierarchy: dict[str, Any] = {}
        if self.sentences is None:
            state = spread_rows(state, found.document, len(input_ids))
        else:
            state, hierarchy = self._read_sentences(self.sentences, vectors, found, input_ids)
        return HierarchicalAutoencoderEncoderOutput(
            last_hidden_state=outputs,
            final_hidden=state[0].transpose(0, 1),
            final_cell=state[1].transpose(0, 1),
            hidden_states=(inputs, outputs) if output_hidden_states else None,
            **hierarchy,
        )

    def _read_words(self, inputs: Tensor, found: SentenceLayout) -> tuple[Tensor, Tensor, LstmState]:
        """Run over all sentences at once: outputs of all positions, the vector of each sentence, final (h, c)."""
        number = found.word_number
        if self.config.reverse_source:
            number = reverse(number, found.length[found.word_sentence], found.closed[found.word_sentence])
        order = packed_order(found.word_sentence, number, found.length)
        (*_, words), state = self.words.run_packed(inputs[found.real][order.words], order.sizes)
        outputs = torch.zeros_like(inputs, dtype=words.dtype)
        outputs[found.real] = words[order.words.argsort()]
        back = order.sentences.argsort()
        return outputs, words[order.last][back], select_states(state, back)

    def _read_sentences(
        self, lstm: StackedLstm, vectors: Tensor, found: SentenceLayout, input_ids: Tensor
    ) -> tuple[LstmState, dict[str, Tensor]]:
        """Encode the sentences of all documents at once: e_D, and the memory of the decoder's attention."""
        rows, document, count = found.document.unique(return_inverse=True, return_counts=True)
        columns = found.real.nonzero()[:, 1]
        ends = columns[found.length.cumsum(0) - 1]
        # The end-of-document mark is a step of its own, the last (section 3.1: D = {s1, …, sN, endD}), no sentence.
        is_end = (found.length == 1) & (input_ids[found.document, ends] == self.config.eos_token_id)
        closed = is_end[count.cumsum(0) - 1]
        number = (
            reverse(found.number, count[document], closed[document]) if self.config.reverse_source else found.number
        )
        order = packed_order(document, number, count)
        (*_, outputs), state = lstm.run_packed(vectors[order.words], order.sizes)

        size = (len(input_ids), int(count.max()) if len(count) else 1)
        place = (found.document, found.number)
        states = outputs.new_zeros(*size, outputs.shape[-1]).index_put(place, outputs[order.words.argsort()])
        is_there = torch.zeros(size, dtype=torch.bool, device=outputs.device).index_put(place, torch.ones_like(is_end))
        attended = torch.zeros_like(is_there).index_put(place, ~is_end)
        # An empty document has nothing but its end to look at.
        attended = torch.where(attended.any(dim=1, keepdim=True), attended, is_there)
        hierarchy = {
            "sentence_states": states,
            "sentence_mask": attended,
            "sentence_ends": torch.zeros(size, dtype=torch.long, device=outputs.device).index_put(place, ends),
        }
        return spread_rows(state, rows[order.sentences], len(input_ids)), hierarchy


class HierarchicalAutoencoderDecoder(HierarchicalAutoencoderPreTrainedModel):
    """The document's vector to sentences (equation 7, with attention 10 to 13), sentences to words (equation 8).

    The output at a word is that of the word LSTM; at an end of sentence, that of the sentence LSTM, whose state then
    starts the word LSTM: the first word of a sentence is predicted from it (equation 9). The start token is not
    a word: its output is that of e_D.
    """

    def __init__(self, config: HierarchicalAutoencoderConfig):
        super().__init__(config)
        self.embed_tokens = None
        if not config.share_embeddings:
            self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.words = make_lstm(config)
        self.sentences = self.attention = None
        if config.hierarchy == "sentence":
            self.sentences = make_lstm(config, inputs=2 if config.attention else 1)
        if config.attention:
            self.attention = AdditiveAttention(*(config.hidden_size,) * 3)
        self.post_init()

    def init_cache(self, encoder_outputs: HierarchicalAutoencoderEncoderOutput) -> HierarchicalCache:
        """Start both LSTMs, all layers, at e_D."""
        final = (encoder_outputs.final_hidden, encoder_outputs.final_cell)
        h, c = (part.transpose(0, 1).contiguous() for part in final)
        cache = HierarchicalCache((h, c), sentence_state=None if self.sentences is None else (h, c))
        if self.attention is not None:
            memory = encoder_outputs.sentence_states
            cache.attention_keys = self.attention.project_keys(memory)
            cache.weights = memory.new_zeros(memory.shape[:2])
        return cache

    @can_return_tuple
    def forward(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None = None,
        *,
        decoder_input_ids: Tensor,
        encoder_outputs: HierarchicalAutoencoderEncoderOutput,
        encoder_attention_mask: Tensor | None = None,
        cache: HierarchicalCache | None = None,
        use_cache: bool = True,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> DecoderOutput:
        if cache is None:
            cache = self.init_cache(encoder_outputs)
        length = decoder_input_ids.shape[1]
        real = decoder_input_ids != self.config.decoder_start_token_id
        if attention_mask is not None:
            real = real & attention_mask[:, -length:].bool()
        run = DecoderRun(self, cache, encoder_outputs)
        outputs, weights = (run.step if length == 1 else run.step_all)(decoder_input_ids, inputs_embeds, real)
        if use_cache:
            cache.update(run.state, length)
            cache.sentence_state, cache.weights = run.sentence_state, run.weights
        cross_attentions = None
        if output_attentions and self.attention is not None:
            cross_attentions = (at_words(weights, encoder_outputs).unsqueeze(1),)
        return DecoderOutput(
            last_hidden_state=outputs,
            cache=cache if use_cache else None,
            hidden_states=(inputs_embeds, outputs) if output_hidden_states else None,
            cross_attentions=cross_attentions,
        )


def make_lstm(config: HierarchicalAutoencoderConfig, inputs: int = 1) -> StackedLstm:
    """Make one of the four LSTMs, which reads `inputs` vectors per step."""
    return StackedLstm(
        inputs * config.hidden_size,
        config.hidden_size,
        config.num_layers,
        dropout=config.dropout,
        cell_output=config.cell_output,
    )


def at_words(weights: Tensor, encoder_outputs: HierarchicalAutoencoderEncoderOutput) -> Tensor:
    """Put weights over sentences `(batch, target_length, sentences)` where these end among the source's words."""
    ends = encoder_outputs.sentence_ends.unsqueeze(1).expand_as(weights)
    zeros = weights.new_zeros(*weights.shape[:2], encoder_outputs.last_hidden_state.shape[1])
    return zeros.scatter_add(2, ends, weights)


class HierarchicalAutoencoderModel(HierarchicalAutoencoderPreTrainedModel, ResidualLstmModel):
    """The autoencoders of Li et al. 2015, section 3, without the output layer.

    Readings where the paper leaves a choice: h and c of all layers pass from encoder to decoder and from sentences to
    words; a sentence's vector is the top layer's output at its end; the whole document is reversed, words and
    sentences; the end-of-document mark is the last step of the encoder; attention compares as Bahdanau et al. 2015 do
    (f is tanh), for every sentence but the first, which starts at e_D itself.
    """

    encoder_class, decoder_class = HierarchicalAutoencoderEncoder, HierarchicalAutoencoderDecoder
    encoder_output_class = HierarchicalAutoencoderEncoderOutput

    def document_embeddings(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return e_D, the decoder's initial state: h, then c, of every layer.

        Args:
            input_ids: Documents as flat streams of words `(batch, source_length)`.
            attention_mask: `(batch, source_length)`, 0 at padding.

        Returns:
            `(batch, 2, num_layers, hidden_size)`.
        """
        outputs = self.encoder(input_ids, attention_mask)
        return torch.stack((outputs.final_hidden, outputs.final_cell), dim=1)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: HierarchicalAutoencoderEncoderOutput | None = None,
        cache: HierarchicalCache | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqModelOutput:
        """Encode the source unless `encoder_outputs` are given, and run the decoder over its inputs.

        Other arguments, errors and what is returned are those of `EncoderDecoder.forward`.

        Args:
            input_ids: Source words `(batch, source_length)`: one flat stream, sentences closed by
                `end_of_sentence_token_id`, the document by `eos_token_id`.
            kwargs: `output_hidden_states` to return the embeddings and the top layer's outputs of encoder and decoder;
                `output_attentions` to return the weights over the source's sentences as `cross_attentions`, each where
                the sentence ends; in the first target sentence, which attends to nothing, they are zero.
        """
        if input_ids is None and encoder_outputs is None:
            raise ValueError("pass `input_ids` or `encoder_outputs`")
        encoder_outputs = self.encode(encoder_outputs, input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        states, masks = self.embed_targets(decoder_input_ids), (attention_mask, decoder_attention_mask)
        arguments = states, encoder_outputs, *masks, cache, use_cache
        outputs = self.decode(*arguments, decoder_input_ids=decoder_input_ids, **kwargs)
        return self.join_outputs(encoder_outputs, outputs)


class HierarchicalAutoencoderForConditionalGeneration(
    HierarchicalAutoencoderPreTrainedModel, ResidualLstmForConditionalGeneration
):
    """The autoencoders of Li et al. 2015 with a softmax over the vocabulary, for training and `generate()`."""

    model_class = HierarchicalAutoencoderModel
    attends_to_words = False
    forward = scored(HierarchicalAutoencoderModel.forward)

    def generate(self, inputs: Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        """Generate as `GenerationMixin.generate` does, at most `max_length_factor` times the source's words.

        At the limit the sentence and the document are closed. `max_length_factor` may also be given here; without a
        length in the call or in the generation config, the same factor bounds the tokens.
        """
        factor = kwargs.pop("max_length_factor", self.config.max_length_factor)
        source = kwargs.get("input_ids") if inputs is None else inputs
        if factor is None or source is None:
            return super().generate(inputs, *args, **kwargs)
        mask = kwargs.get("attention_mask")
        real = source != self.config.pad_token_id if mask is None else mask.bool()
        limit = WordLimit(source, real, factor, self.config)
        kwargs["logits_processor"] = LogitsProcessorList([*(kwargs.get("logits_processor") or ()), limit])
        if not self._has_length(args, kwargs):
            kwargs["max_new_tokens"] = math.ceil(factor * int(real.sum(dim=1).max())) + 2
        return super().generate(inputs, *args, **kwargs)

    def _has_length(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        config = args[0] if args else kwargs.get("generation_config")
        decided = (config or self.generation_config).to_diff_dict() | kwargs
        return any(decided.get(name) is not None for name in ("max_new_tokens", "max_length"))


class WordLimit(LogitsProcessor):
    """Limits each row to `factor` times the words of its source, then closes its sentence and document.

    Source: Li et al. 2015, section 4.2.

    Args:
        source: Words of the sources, `(sources, length)`.
        real: Which of them are no padding, of the same shape.
        config: Has the ids of the marks, which do not count.
    """

    def __init__(self, source: Tensor, real: Tensor, factor: float, config: PreTrainedConfig):
        self.end_of_sentence, self.end_of_document = config.end_of_sentence_token_id, config.eos_token_id
        marks = {self.end_of_sentence, self.end_of_document, config.decoder_start_token_id, config.pad_token_id}
        self.frame = torch.tensor(sorted(marks - {None}), device=source.device)
        words = (real & ~torch.isin(source, self.frame)).sum(dim=1)
        self.limits = (words * factor).floor().long()

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        words = (~torch.isin(input_ids, self.frame)).sum(dim=1)
        full = words >= self.limits.repeat_interleave(len(input_ids) // len(self.limits))
        is_open = ~torch.isin(input_ids[:, -1], self.frame)
        mark = torch.where(is_open, self.end_of_sentence, self.end_of_document).unsqueeze(1)
        closing = torch.full_like(scores, -torch.inf).scatter(1, mark, 0.0)
        return torch.where(full.unsqueeze(1), closing, scores)

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import GenerationMixin, LogitsProcessorList
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput
from transformers.utils import can_return_tuple

from .attention import AdditiveAttention
from .configuration_hierarchical_autoencoder import HierarchicalAutoencoderConfig
from .hierarchical_autoencoder_sentences import SentenceLayout, find_sentences, packed_order, reverse
from .hierarchical_autoencoder_word_limit import WordLimit
from .language_model_head import LanguageModelHeadMixin, language_model_loss
from .modeling_residual_lstm import ResidualLstmPreTrainedModel
from .recurrent import LstmState, RecurrentCache, StackedLstm
from .token_ids import embed
from .vocabulary import VocabularyProjection

__all__ = [
    "HierarchicalAutoencoderForConditionalGeneration",
    "HierarchicalAutoencoderModel",
    "HierarchicalAutoencoderPreTrainedModel",
]


@dataclass
class HierarchicalAutoencoderEncoderOutput(BaseModelOutput):
    """Encoder outputs, batch first so that `generate()` can repeat them for every beam.

    Args:
        last_hidden_state: Outputs of the word LSTM where the words stand, `(batch, source_length, hidden_size)`.
        final_hidden: e_D: h of every layer behind the whole document, `(batch, num_layers, hidden_size)`.
        final_cell: c of the same shape.
        sentence_states: Outputs of the sentence LSTM in the source's order, `(batch, sentences, hidden_size)`; None
            without hierarchy, as are the two below.
        sentence_mask: Which of them are sentences to attend to, `(batch, sentences)`.
        sentence_ends: Where the last word of each stands in the source, `(batch, sentences)`.
        hidden_states: On request, the embeddings and the word LSTM's outputs.
    """

    final_hidden: torch.FloatTensor | None = None
    final_cell: torch.FloatTensor | None = None
    sentence_states: torch.FloatTensor | None = None
    sentence_mask: torch.BoolTensor | None = None
    sentence_ends: torch.LongTensor | None = None


@dataclass
class HierarchicalAutoencoderDecoderOutput(BaseModelOutput):
    """Decoder outputs; `attentions` are weights over the source, `(batch, 1, target_length, source_length)`."""

    past_key_values: HierarchicalCache | None = None


class HierarchicalCache(RecurrentCache):
    """What the decoder remembers between two `generate()` steps: the states of words and of sentences.

    Args:
        state: (h, c) of the word LSTM, each `(num_layers, batch, hidden_size)`.
        sentence_state: (h, c) of the sentence LSTM; None without hierarchy.
        attention_keys: Projected states of the source's sentences `(batch, sentences, hidden_size)`.
        weights: The last attention weights `(batch, sentences)`; zero in the first sentence.
    """

    def __init__(
        self,
        state: LstmState,
        sentence_state: LstmState | None = None,
        attention_keys: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
    ):
        super().__init__(state, attention_keys)
        self.sentence_state = sentence_state
        self.weights = weights

    def batch_select_indices(self, indices: torch.LongTensor) -> None:
        """Keep the rows `indices` of the batch, in that order."""
        super().batch_select_indices(indices)
        if self.sentence_state is not None:
            self.sentence_state = select(self.sentence_state, indices)
        if self.weights is not None:
            self.weights = self.weights.index_select(0, indices)


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
        input_ids: torch.LongTensor,
        attention_mask: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> HierarchicalAutoencoderEncoderOutput:
        real = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        marks = (self.config.end_of_sentence_token_id, self.config.eos_token_id)
        found = find_sentences(input_ids, real, marks, whole=self.sentences is None)
        inputs = embed(self.embed_tokens, input_ids, "input_ids")
        outputs, vectors, state = self._read_words(inputs, found)
        hierarchy = {}
        if self.sentences is None:
            state = spread_rows(state, found.document, len(input_ids))
        else:
            state, hierarchy = self._read_sentences(vectors, found, input_ids)
        return HierarchicalAutoencoderEncoderOutput(
            last_hidden_state=outputs,
            final_hidden=state[0].transpose(0, 1),
            final_cell=state[1].transpose(0, 1),
            hidden_states=(inputs, outputs) if output_hidden_states else None,
            **hierarchy,
        )

    def _read_words(self, inputs: torch.Tensor, found: SentenceLayout) -> tuple[torch.Tensor, torch.Tensor, LstmState]:
        """Run over all sentences at once: outputs of all positions, the vector of each sentence, final (h, c)."""
        number = found.word_number
        if self.config.reverse_source:
            number = reverse(number, found.length[found.word_sentence], found.closed[found.word_sentence])
        order = packed_order(found.word_sentence, number, found.length)
        words, state = self.words.run_packed(order.pack(inputs[found.real][order.words]))
        outputs = torch.zeros_like(inputs, dtype=words.dtype)
        outputs[found.real] = words[order.words.argsort()]
        back = order.sentences.argsort()
        return outputs, words[order.last][back], select(state, back)

    def _read_sentences(
        self, vectors: torch.Tensor, found: SentenceLayout, input_ids: torch.LongTensor
    ) -> tuple[LstmState, dict[str, torch.Tensor]]:
        """Run over the sentences of all documents at once: e_D, and what the decoder attends to."""
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
        outputs, state = self.sentences.run_packed(order.pack(vectors[order.words]))

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
    starts the word LSTM: the first word of a sentence is predicted from it (equation 9). The start token is no word:
    the output there is that of e_D.
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
        state = tuple(
            part.transpose(0, 1).contiguous() for part in (encoder_outputs.final_hidden, encoder_outputs.final_cell)
        )
        memory = encoder_outputs.sentence_states
        return HierarchicalCache(
            state,
            None if self.sentences is None else state,
            None if self.attention is None else self.attention.project_keys(memory),
            None if self.attention is None else memory.new_zeros(memory.shape[:2]),
        )

    @can_return_tuple
    def forward(
        self,
        decoder_input_ids: torch.LongTensor,
        inputs_embeds: torch.FloatTensor,
        attention_mask: torch.Tensor | None = None,
        encoder_outputs: HierarchicalAutoencoderEncoderOutput | None = None,
        past_key_values: HierarchicalCache | None = None,
        use_cache: bool = True,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> HierarchicalAutoencoderDecoderOutput:
        cache = self.init_cache(encoder_outputs) if past_key_values is None else past_key_values
        length = decoder_input_ids.shape[1]
        real = decoder_input_ids != self.config.decoder_start_token_id
        if attention_mask is not None:
            real = real & attention_mask[:, -length:].bool()
        run = DecoderRun(self, cache, encoder_outputs)
        outputs, weights = (run.step if length == 1 else run.step_all)(decoder_input_ids, inputs_embeds, real)
        if use_cache:
            cache.update(run.state, None, length)
            cache.sentence_state, cache.weights = run.sentence_state, run.weights
        attentions = None
        if output_attentions and self.attention is not None:
            attentions = (at_words(weights, encoder_outputs).unsqueeze(1),)
        return HierarchicalAutoencoderDecoderOutput(
            last_hidden_state=outputs,
            past_key_values=cache if use_cache else None,
            hidden_states=(inputs_embeds, outputs) if output_hidden_states else None,
            attentions=attentions,
        )


class DecoderRun:
    """The decoder's states on their way through some positions; the cache stays as it is.

    Args:
        decoder: Its parts.
        cache: The states to start from.
        encoder_outputs: What the attention looks at.
    """

    def __init__(
        self,
        decoder: HierarchicalAutoencoderDecoder,
        cache: HierarchicalCache,
        encoder_outputs: HierarchicalAutoencoderEncoderOutput,
    ):
        self.decoder, self.keys, self.encoder_outputs = decoder, cache.attention_keys, encoder_outputs
        self.state, self.sentence_state, self.weights = cache.state, cache.sentence_state, cache.weights
        self.end_of_sentence = decoder.config.end_of_sentence_token_id

    def step(self, ids: torch.LongTensor, inputs: torch.Tensor, real: torch.BoolTensor):
        """Take one position `(batch, 1)` of all rows; those that close a sentence also step in the one above."""
        outputs, (h, c) = self.decoder.words(inputs, None, self.state)[:2]
        before = self.decoder.words.dropout(self.state[0][-1]).unsqueeze(1)
        outputs = torch.where(real.unsqueeze(-1), outputs, before)
        self.state = tuple(
            torch.where(real.unsqueeze(0), new, old) for new, old in zip((h, c), self.state, strict=True)
        )
        if self.sentence_state is not None:
            rows = (real & (ids == self.end_of_sentence)).squeeze(1).nonzero().squeeze(1)
            if len(rows):
                sentences = self._close_sentences(rows, outputs[rows, 0])
                outputs = outputs.index_copy(0, rows, sentences.unsqueeze(1))
        return outputs, None if self.weights is None else self.weights.unsqueeze(1)

    @torch.compiler.disable
    def step_all(self, ids: torch.LongTensor, inputs: torch.Tensor, real: torch.BoolTensor):
        """Take many positions, sentence by sentence: the n-th sentences of all rows are one packed call.

        A sentence starts where the sentence before led the LSTM above, so sentences of one document cannot run side by
        side.
        """
        found = find_sentences(ids, real, (self.end_of_sentence,), whole=self.sentence_state is None)
        before = self.decoder.words.dropout(self.state[0][-1])
        outputs, order = [before], [torch.arange(len(ids), device=ids.device)]
        weights = [self.weights]
        inputs = inputs[real]
        number_of_word = found.number[found.word_sentence]
        for number in range(int(found.number.max()) + 1 if len(found.number) else 0):
            words = (number_of_word == number).nonzero().squeeze(1)
            sentences = (found.number == number).nonzero().squeeze(1)
            of_words = torch.searchsorted(sentences, found.word_sentence[words])
            packed = packed_order(of_words, found.word_number[words], found.length[sentences])
            sentences, words = sentences[packed.sentences], words[packed.words]
            weights.append(None if self.weights is None else self.weights[found.document[found.word_sentence[words]]])
            outputs.append(self._run_sentences(packed.pack(inputs[words]), packed.last, sentences, found))
            order.append(words + len(ids))
            if self.weights is not None:
                weights[-1] = weights[-1].index_copy(0, packed.last, self.weights[found.document[sentences]])
        back = torch.cat(order).argsort()[self._last_output(real)]
        return torch.cat(outputs)[back], None if self.weights is None else torch.cat(weights)[back]

    def _run_sentences(
        self, inputs, last: torch.Tensor, sentences: torch.Tensor, found: SentenceLayout
    ) -> torch.Tensor:
        """Run the words of one sentence of each of some rows, and close those that end: outputs of all words."""
        rows = found.document[sentences]
        outputs, state = self.decoder.words.run_packed(inputs, select(self.state, rows))
        self.state = replace(self.state, rows, state)
        closed = found.closed[sentences]
        if self.sentence_state is None or not closed.any():
            return outputs
        last = last[closed]
        return outputs.index_copy(0, last, self._close_sentences(rows[closed], outputs[last]))

    def _close_sentences(self, rows: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Step the sentence LSTM of some rows by the vectors of the sentences they closed; its state starts the next.

        Returns:
            Its outputs `(rows, hidden_size)`.
        """
        state, inputs = select(self.sentence_state, rows), vectors
        if self.keys is not None:
            memory, mask = self.encoder_outputs.sentence_states[rows], self.encoder_outputs.sentence_mask[rows]
            context, weights = self.decoder.attention(state[0][-1].unsqueeze(1), self.keys[rows], memory, mask)
            inputs = torch.cat((vectors, context.squeeze(1)), dim=-1)
            self.weights = self.weights.index_copy(0, rows, weights.squeeze(1))
        outputs, state, _ = self.decoder.sentences(inputs.unsqueeze(1), None, state)
        self.sentence_state = replace(self.sentence_state, rows, state)
        self.state = replace(self.state, rows, state)
        return outputs.squeeze(1)

    @staticmethod
    def _last_output(real: torch.BoolTensor) -> torch.Tensor:
        """For each position the last output so far: 0 to batch - 1 are those before the first word of each row."""
        seen = real.long().cumsum(1)
        before = seen[:, -1].cumsum(0) - seen[:, -1]
        rows = torch.arange(len(real), device=real.device)
        return torch.where(seen > 0, len(real) + before.unsqueeze(1) + seen - 1, rows.unsqueeze(1))


def make_lstm(config: HierarchicalAutoencoderConfig, inputs: int = 1) -> StackedLstm:
    """Make one of the four LSTMs, which reads so many vectors at a step."""
    return StackedLstm(
        inputs * config.hidden_size,
        config.hidden_size,
        config.num_layers,
        dropout=config.dropout,
        cell_output=config.cell_output,
    )


def select(state: LstmState, rows: torch.Tensor) -> LstmState:
    """The states of some rows."""
    return tuple(part.index_select(1, rows) for part in state)


def replace(state: LstmState, rows: torch.Tensor, new: LstmState) -> LstmState:
    """States with those of some rows replaced."""
    return tuple(part.index_copy(1, rows, of_rows.to(part.dtype)) for part, of_rows in zip(state, new, strict=True))


def spread_rows(state: LstmState, rows: torch.Tensor, batch_size: int) -> LstmState:
    """States of some rows as those of a batch, zero for its other rows."""
    return replace(tuple(part.new_zeros(len(part), batch_size, part.shape[-1]) for part in state), rows, state)


def at_words(weights: torch.Tensor, encoder_outputs: HierarchicalAutoencoderEncoderOutput) -> torch.Tensor:
    """Put weights over sentences `(batch, target_length, sentences)` where these end among the source's words."""
    ends = encoder_outputs.sentence_ends.unsqueeze(1).expand_as(weights)
    zeros = weights.new_zeros(*weights.shape[:2], encoder_outputs.last_hidden_state.shape[1])
    return zeros.scatter_add(2, ends, weights)


class HierarchicalAutoencoderModel(HierarchicalAutoencoderPreTrainedModel):
    """The autoencoders of Li et al. 2015, section 3, without the output layer.

    Readings where the paper leaves a choice: h and c of all layers pass from encoder to decoder and from sentences to
    words; a sentence's vector is the top layer's output at its end; the whole document is reversed, words and
    sentences; the end-of-document mark is the last step of the encoder; attention compares as Bahdanau et al. 2015 do
    (f is tanh), for every sentence but the first, which starts at e_D itself.
    """

    def __init__(self, config: HierarchicalAutoencoderConfig):
        super().__init__(config)
        self.encoder = HierarchicalAutoencoderEncoder(config)
        self.decoder = HierarchicalAutoencoderDecoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.encoder.embed_tokens = value

    def get_decoder_embeddings(self) -> nn.Embedding:
        """Return the table that embeds the decoder's inputs: the encoder's, where they share one."""
        return self.encoder.embed_tokens if self.decoder.embed_tokens is None else self.decoder.embed_tokens

    def document_embeddings(
        self, input_ids: torch.LongTensor, attention_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return e_D, all that the decoder starts from: h, then c, of every layer.

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
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: HierarchicalAutoencoderEncoderOutput | None = None,
        past_key_values: HierarchicalCache | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> Seq2SeqModelOutput:
        """Encode the source unless `encoder_outputs` are given, and run the decoder over its inputs.

        Args:
            input_ids: Source words `(batch, source_length)`: one flat stream, sentences closed by
                `end_of_sentence_token_id`, the document by `eos_token_id`.
            attention_mask: `(batch, source_length)`, 0 at padding, which may stand on either side or between.
            decoder_input_ids: Target words so far `(batch, target_length)`; with `past_key_values`, the new ones only.
            decoder_attention_mask: `(batch, target_length)`; only needed where padding stands before a target word.
            encoder_outputs: What the encoder returned for this source.
            past_key_values: The cache of the steps before. It is updated in place and returned.
            use_cache: Return the cache; `config.use_cache` by default.
            output_hidden_states: Return the embeddings and the top layer's outputs of encoder and decoder.
            output_attentions: Return the weights over the source's sentences as `cross_attentions`, each where the
                sentence ends; in the first target sentence, which attends to nothing, they are zero.

        Returns:
            `last_hidden_state` of shape `(batch, target_length, hidden_size)` and what was asked for.

        Raises:
            ValueError: An id is not in the vocabulary, or the inputs of one side are missing.
        """
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError("pass `input_ids` or `encoder_outputs`")
            encoder_outputs = self.encoder(
                input_ids, attention_mask, output_hidden_states=output_hidden_states, return_dict=True
            )
        elif not isinstance(encoder_outputs, HierarchicalAutoencoderEncoderOutput):
            raise ValueError(
                "`encoder_outputs` must be what this model's encoder returned: it carries the final state"
            )
        if decoder_input_ids is None:
            raise ValueError("pass `decoder_input_ids` (or `labels` to the LM head)")
        outputs = self.decoder(
            decoder_input_ids,
            embed(self.get_decoder_embeddings(), decoder_input_ids, "decoder_input_ids"),
            attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
            use_cache=self.config.use_cache if use_cache is None else use_cache,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            return_dict=True,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=outputs.last_hidden_state,
            past_key_values=outputs.past_key_values,
            decoder_hidden_states=outputs.hidden_states,
            cross_attentions=outputs.attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
        )


class HierarchicalAutoencoderForConditionalGeneration(
    LanguageModelHeadMixin, HierarchicalAutoencoderPreTrainedModel, GenerationMixin
):
    """The autoencoders of Li et al. 2015 with a softmax over the vocabulary, for training and `generate()`."""

    def __init__(self, config: HierarchicalAutoencoderConfig):
        super().__init__(config)
        self.model = HierarchicalAutoencoderModel(config)
        self.lm_head = VocabularyProjection(config.hidden_size, config.vocab_size)
        table = "encoder" if config.share_embeddings else "decoder"
        self._tied_weights_keys = {"lm_head.weight": f"model.{table}.embed_tokens.weight"}
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: HierarchicalAutoencoderEncoderOutput | None = None,
        past_key_values: HierarchicalCache | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> Seq2SeqLMOutput:
        """Score every next word; the arguments are those of `HierarchicalAutoencoderModel.forward`, and `labels`.

        Args:
            labels: Target words `(batch, target_length)`, -100 where there is none. The decoder's inputs are made from
                them, shifted to the right, unless they are given.

        Returns:
            `loss`, the mean cross-entropy in nats over the labels that are not -100; `logits` of shape
            `(batch, target_length, vocab_size)`; and what was asked for.
        """
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids, decoder_attention_mask = self.read_labels(labels, decoder_attention_mask)
        outputs = self.model(
            input_ids,
            attention_mask,
            decoder_input_ids,
            decoder_attention_mask,
            encoder_outputs,
            past_key_values,
            use_cache,
            output_hidden_states,
            output_attentions,
            return_dict=True,
        )
        logits = self.lm_head(outputs.last_hidden_state)
        return Seq2SeqLMOutput(
            loss=language_model_loss(logits, labels),
            logits=logits,
            past_key_values=outputs.past_key_values,
            decoder_hidden_states=outputs.decoder_hidden_states,
            cross_attentions=outputs.cross_attentions,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            encoder_hidden_states=outputs.encoder_hidden_states,
        )

    def generate(self, inputs: torch.LongTensor | None = None, *args: Any, **kwargs: Any) -> Any:
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
        limit = WordLimit.of(source, real, factor, self.config)
        kwargs["logits_processor"] = LogitsProcessorList([*(kwargs.get("logits_processor") or ()), limit])
        if not self._has_length(args, kwargs):
            kwargs["max_new_tokens"] = math.ceil(factor * int(real.sum(dim=1).max())) + 2
        return super().generate(inputs, *args, **kwargs)

    def _has_length(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        config = args[0] if args else kwargs.get("generation_config")
        decided = (config or self.generation_config).to_diff_dict() | kwargs
        return any(decided.get(name) is not None for name in ("max_new_tokens", "max_length"))

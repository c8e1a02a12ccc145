from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin, LogitsProcessor, LogitsProcessorList, PreTrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqModelOutput
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple

from ..layers.encoder_decoder import SET_BY_MODEL, DecoderOutput, EncoderDecoder, WritingPreTrainedModel
from ..layers.language_model_head import LanguageModelHeadMixin, scored
from ..layers.precision import at_least_single
from ..layers.token_ids import check_ids
from ..search.embedding_paraphraser import EmbeddingParaphraser, perturb
from .configuration_hierarchical_lm import HierarchicalLmConfig
from .ragged import Ragged, Words, at_symbols, find_words, spellings
from .sentence_layers import (
    HierarchicalLmCache,
    ScaledLinear,
    SentenceAttention,
    TransformerLayer,
    condition,
    make_layer,
)
from .word_coders import FeedForward, WordDecoder, WordEncoder


@dataclass
class HierarchicalLmEncoderOutput(BaseModelOutput):
    """Encoder outputs, batch first so that `generate()` can repeat them for every beam.

    Args:
        last_hidden_state: Outputs of the last layer at each word's last symbol, zero elsewhere, `(batch,
            source_length, width)`.
        sentence_states: The sentence vector of every layer, the decoder's only input from the source, `(batch,
            num_layers, value_size)`.
        hidden_states: On request, the words' vectors and every layer's outputs, where the words end.
    """

    sentence_states: Tensor = SET_BY_MODEL


@dataclass
class HierarchicalLmModelOutput(Seq2SeqModelOutput):
    """What `HierarchicalLmModel` returns.

    Args:
        sentence_states: The source's sentence vectors, `(batch, num_layers, value_size)`, without noise.
        window_states: In training with a decode window, the output layer's inputs at all positions of all windows,
            `(positions, width)`.
        window_positions: Their positions in the decoder's inputs, row by row, `(positions,)`.
    """

    sentence_states: Tensor | None = None
    window_states: Tensor | None = None
    window_positions: Tensor | None = None


class HierarchicalLmPreTrainedModel(WritingPreTrainedModel):
    """Base class of the models, with initial weights, which the thesis does not give.

    Nothing in this family normalises: it is by their initial weights alone that vectors keep their size through ten
    layers and that gradients reach the first. With too small ones sentence vectors vanish and the source is not used.
    Embeddings start as N(0, 1), linear layers before a GELU or a GRU as `ScaledLinear` draws them, and the others with
    weights of N(0, 1/n), for n inputs, and biases of zero.
    """

    config_class = HierarchicalLmConfig

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, ScaledLinear):
            weight, bias = module.draw()
            init.copy_(module.weight, weight)
            if bias is not None:
                init.copy_(module.bias, bias)
        elif isinstance(module, nn.Linear):
            init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight)
        elif isinstance(module, TransformerLayer):
            init.zeros_(module.position_bias)

    def _find_words(self, ids: Tensor, mask: Tensor | None) -> Words:
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
        marks = [self.config.decoder_start_token_id, self.config.eos_token_id]
        return find_words(ids, real, self.config.stop_token_id, marks)


class HierarchicalLmEncoder(HierarchicalLmPreTrainedModel):
    """Characters to words (section 2.3), words to a sentence vector for every layer (section 2.4)."""

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        self.word_encoder = WordEncoder(config)
        self.layers, self.attentions = nn.ModuleList(), nn.ModuleList()
        width = config.word_encoder_sizes[-1]
        for _ in range(config.num_layers):
            layer = make_layer(width, config, means=0)
            self.layers.append(layer)
            width = layer.output_size
            self.attentions.append(SentenceAttention(width, config))
        self.projections = None
        if config.sentence_projection:
            sizes = (config.value_size, config.value_size)
            self.projections = nn.ModuleList(ScaledLinear(*sizes) for _ in range(config.num_layers))
        self.post_init()

    def encode_words(self, symbols: Tensor, starts: Tensor, characters: Tensor) -> Tensor:
        """Encode words, without dropout each spelling once; returns `(words, word_encoder_sizes[-1])`.

        Each has so many `characters` from `starts` on in the flat symbols; those behind `max_characters` are clipped.
        """
        characters = characters.clamp(max=self.config.max_characters)
        if self.training and self.config.dropout:
            words = Ragged.of(starts, characters)
            return self.word_encoder(self.embed_tokens(symbols[words.items]), words)
        first, kind = spellings(symbols, Ragged.of(starts, characters))
        words = Ragged.of(starts[first], characters[first])
        return self.word_encoder(self.embed_tokens(symbols[words.items]), words)[kind]

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> HierarchicalLmEncoderOutput:
        words, outputs, sentence_states = self._read(input_ids, attention_mask)
        wanted = outputs if output_hidden_states else outputs[-1:]
        places = [at_symbols(words, words.ends()[words.sentences.items], packed) for packed in wanted]
        return HierarchicalLmEncoderOutput(
            last_hidden_state=places[-1],
            sentence_states=sentence_states,
            hidden_states=tuple(places) if output_hidden_states else None,
        )

    def encode_sentences(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Only the sentence vectors, `(batch, num_layers, value_size)`; arguments as in `forward`."""
        return self._read(input_ids, attention_mask)[2]

    def _read(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Words, list[Tensor], Tensor]:
        """Find the words, every layer's outputs for them, packed, and the sentence vectors."""
        check_ids(self.embed_tokens, input_ids, "input_ids")
        words = self._find_words(input_ids, attention_mask)
        x = self.encode_words(words.ids, words.starts, words.characters)
        order = words.sentences
        x = x[order.items]
        outputs, vectors = [x], []
        for layer, attention in zip(self.layers, self.attentions, strict=True):
            x = layer(x, order, causal=False)
            outputs.append(x)
            vectors.append(attention(x, order))
        if self.projections is not None:
            pairs = zip(self.projections, vectors, strict=True)
            vectors = [nn.functional.gelu(layer(vector)) for layer, vector in pairs]
        return words, outputs, torch.stack(vectors, dim=1)


class HierarchicalLmDecoder(HierarchicalLmPreTrainedModel):
    """Sentence vectors and words so far to the next word's vector (section 2.5), and that to characters (2.6)."""

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__(config)
        self.layers = nn.ModuleList()
        width = config.word_encoder_sizes[-1]
        for _ in range(config.num_layers):
            layer = make_layer(width, config, means=1)
            self.layers.append(layer)
            width = layer.output_size
        sizes = [config.value_size] if config.output_projection else []
        self.projection = FeedForward(config.value_size, sizes, config.dropout)
        self.word_decoder = WordDecoder(config)
        self.post_init()

    def forward(
        self, words: Words, vectors: Tensor, embeddings: Callable, sentence_states: Tensor
    ) -> tuple[Tensor, Ragged, Tensor]:
        """Run over all words, encoded as `(words, width)`, then over all characters.

        Returns what the output layer scores, packed, `(characters, width)`; how it is packed; and which of these
        characters belong to the word that follows, which not all do in a window.
        """
        order = words.sentences
        x = vectors[order.items]
        for layer, sentence in zip(self.layers, sentence_states.unbind(1), strict=True):
            x = layer(condition(x, sentence[order.run]), order, causal=True)
        x = order.unpack(self.projection(x[:, : self.config.value_size]), len(words.starts))
        closed, ends = words.closes[words.ends()], words.ends()
        spans, own = self._spans(words, ends)
        packed = Ragged.of(ends[closed], spans[closed])
        hidden = self.word_decoder(x[closed], embeddings(words.ids[packed.items]), packed)
        return hidden, packed, packed.step < own[closed][packed.run]

    def _spans(self, words: Words, ends: Tensor) -> tuple[Tensor, Tensor]:
        """How many characters each word's vector is decoded to, and how many of them are the next word's own."""
        row_ends = words.sentences.lengths.cumsum(0)
        row = torch.arange(words.sentences.count, device=ends.device).repeat_interleave(words.sentences.lengths)
        rest = ends[row_ends[row] - 1] - ends
        following = torch.cat((ends[1:], ends[-1:])) - ends
        next_closes = torch.cat((words.closes[ends[1:]], words.closes.new_zeros(1))).long()[: len(ends)]
        own = torch.where(rest > 0, following - next_closes, 0) + 1
        if self.config.decode_window is None or not self.training:
            return own, own
        return torch.maximum(own, (rest + 1).clamp(max=self.config.decode_window)), own

    def step(
        self, encoder: HierarchicalLmEncoder, ids: Tensor, real: Tensor, cache: HierarchicalLmCache, sentences: Tensor
    ) -> Tensor:
        """Read one symbol in every row, `(batch,)`, and close the words that it ends; the cache is updated.

        `encoder` has the characters' embeddings and the word encoder; `real` marks rows whose symbol is not padding.
        Returns the inputs of the output layer, `(batch, width)`.
        """
        is_stop = ids == self.config.stop_token_id
        marks = (self.config.decoder_start_token_id, self.config.eos_token_id)
        closes = real & (is_stop | (ids == marks[0]) | (ids == marks[1]))
        spelled = (real & ~closes).nonzero().squeeze(1)
        speller = self.word_decoder.speller
        cache.spelling[spelled] = speller.step(
            encoder.embed_tokens(ids[spelled]), cache.spelling[spelled], cache.characters[spelled]
        ).to(cache.spelling.dtype)
        cache.append(ids, real & ~is_stop)
        rows = closes.nonzero().squeeze(1)
        if len(rows):
            x = encoder.encode_words(*cache.close_words(rows))
            count = cache.words[rows]
            for layer, state, sentence in zip(self.layers, cache.layers, sentences.unbind(1), strict=True):
                x = layer.step(condition(x, sentence[rows]), state, rows, count)
            cache.vectors[rows] = self.projection(x[:, : self.config.value_size])
            cache.words[rows] += 1
        hidden = self.word_decoder.score(cache.vectors, cache.spelling)
        return hidden * (cache.words > 0).unsqueeze(1)


class HierarchicalLmModel(EncoderDecoder, HierarchicalLmPreTrainedModel):
    """The hierarchical encoder-decoder of Traynor 2018, chapter 2, without the output layer.

    Sources and targets are flat streams of characters in which STOP ends a word and END a sentence, as
    `HierarchicalLmTokenizer` makes them; START precedes a target. The decoder's only input from the source is one
    vector per layer.
    """

    encoder: HierarchicalLmEncoder
    decoder: HierarchicalLmDecoder
    encoder_class, decoder_class = HierarchicalLmEncoder, HierarchicalLmDecoder
    encoder_output_class, encoder_output_reason = HierarchicalLmEncoderOutput, "it has `sentence_states`"
    output_class = HierarchicalLmModelOutput

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: HierarchicalLmEncoderOutput | None = None,
        cache: HierarchicalLmCache | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> HierarchicalLmModelOutput:
        """Encode the source unless `encoder_outputs` are given, and run the decoder over its inputs.

        Other arguments and errors are those of `EncoderDecoder.forward`, with symbols for words.

        Args:
            decoder_input_ids: Target symbols so far, START first.
            use_cache: Run symbol by symbol and return the cache; by default only if one is given. `generate()` asks
                for it; a whole target is faster without.
            kwargs: `output_hidden_states` to return the encoder's words and layers, and what the output layer scores;
                `output_attentions` is without effect: the decoder attends to nothing in the source.

        Returns:
            `last_hidden_state` of shape `(batch, target_length, word_decoder_sizes[-1])`, zero at padding, and what
            was asked for.
        """
        if input_ids is None and encoder_outputs is None:
            raise ValueError("pass `input_ids` or `encoder_outputs`")
        encoder_outputs = self.encode(encoder_outputs, input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        if decoder_input_ids is None:
            raise ValueError("pass `decoder_input_ids` (or `labels` to the LM head)")
        check_ids(self.encoder.embed_tokens, decoder_input_ids, "decoder_input_ids")
        sentences = encoder_outputs.sentence_states
        if self.training and self.config.sentence_noise:
            sentences = perturb(sentences, self.config.sentence_noise)
        window = {}
        if cache is None and not use_cache:
            hidden, window = self._decode(decoder_input_ids, decoder_attention_mask, sentences)
        else:
            if cache is None:
                speller = self.decoder.word_decoder.speller
                cache = HierarchicalLmCache(self.config, self.decoder.layers, sentences[:, 0], speller.state_size)
            hidden = self._decode_steps(decoder_input_ids, decoder_attention_mask, sentences, cache)
        outputs = DecoderOutput(
            last_hidden_state=hidden,
            cache=cache,
            hidden_states=(hidden,) if kwargs.get("output_hidden_states") else None,
        )
        return self.join_outputs(encoder_outputs, outputs, sentence_states=encoder_outputs.sentence_states, **window)

    def _decode(self, ids: Tensor, mask: Tensor | None, sentences: Tensor):
        words = self._find_words(ids, mask)
        vectors = self.encoder.encode_words(words.ids, words.starts, words.characters)
        # A module as an argument would be moved to the decoder's device by accelerate.
        embeddings = partial(self.encoder.embed_tokens)
        states, spans, own = self.decoder(words, vectors, embeddings, sentences)
        hidden = at_symbols(words, spans.items[own], states[own])
        if self.config.decode_window is None or not self.training:
            return hidden, {}
        positions = words.real.flatten().nonzero().squeeze(1)[spans.items]
        return hidden, {"window_states": states, "window_positions": positions}

    def _decode_steps(self, ids: Tensor, mask: Tensor | None, sentences, cache: HierarchicalLmCache):
        length = ids.shape[1]
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask[:, -length:].bool()
        steps = [self.decoder.step(self.encoder, ids[:, t], real[:, t], cache, sentences) for t in range(length)]
        cache.seen_tokens += length
        return torch.stack(steps, dim=1)


class HierarchicalLmForConditionalGeneration(
    EmbeddingParaphraser, LanguageModelHeadMixin, HierarchicalLmPreTrainedModel, GenerationMixin
):
    """The model of Traynor 2018 with a softmax over the characters, for training and `generate()`."""

    attends_to_words = False
    # In training with a decode window it covers all windows.
    has_plain_loss = False

    def __init__(self, config: HierarchicalLmConfig):
        super().__init__(config)
        self.model = HierarchicalLmModel(config)
        self.lm_head = nn.Linear(config.word_decoder_sizes[-1], config.vocab_size)
        self.post_init()

    forward = scored(HierarchicalLmModel.forward)

    def embed_words(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Encode words, one in each row of `(words, length)`; returns `(words, word_encoder_sizes[-1])`."""
        words = self._find_words(input_ids, attention_mask)
        return self.model.encoder.encode_words(words.ids, words.starts, words.characters)

    def read_labels(self, labels: Tensor, decoder_attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """As the base class, with a mask that ends where the labels end."""
        if decoder_attention_mask is None:
            mask = labels != -100
            decoder_attention_mask = mask.cummax(dim=1).values & mask.flip(1).cummax(dim=1).values.flip(1)
        return super().read_labels(labels, decoder_attention_mask)

    def score(self, outputs: HierarchicalLmModelOutput, labels: Tensor | None) -> dict[str, Tensor | None]:
        """As the base class; in training with a decode window, score all symbols of all windows.

        The loss is in nits per character.
        """
        if labels is None or outputs.window_states is None:
            return super().score(outputs, labels)
        targets = labels.to(outputs.window_states.device).flatten()[outputs.window_positions]
        loss = nn.functional.cross_entropy(at_least_single(self.lm_head(outputs.window_states)), targets)
        return {"loss": loss, "logits": self.lm_head(outputs.last_hidden_state)}

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Generate as `GenerationMixin.generate` does, within the length limits of the thesis.

        Words have at most `config.max_characters` characters and sentences `config.max_words` words; at these limits
        only STOP and END may follow.
        """
        limits = LengthLimits(self.config)
        kwargs["logits_processor"] = LogitsProcessorList([*(kwargs.get("logits_processor") or ()), limits])
        return super().generate(*args, **kwargs)


class LengthLimits(LogitsProcessor):
    """Limits the characters of a word and the words of a sentence; then STOP and END must follow."""

    def __init__(self, config: PreTrainedConfig):
        self.max_characters, self.max_words = config.max_characters, config.max_words
        self.start, self.stop, self.end = config.decoder_start_token_id, config.stop_token_id, config.eos_token_id

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        is_stop = input_ids == self.stop
        marks = is_stop | (input_ids == self.start)
        places = torch.arange(1, input_ids.shape[1] + 1, device=input_ids.device)
        open_characters = input_ids.shape[1] - (marks * places).amax(dim=1)
        long_word = open_characters >= self.max_characters
        long_sentence = (is_stop.sum(dim=1) >= self.max_words) & ~long_word
        scores = self._only(scores, long_word, self.stop)
        return self._only(scores, long_sentence, self.end)

    @staticmethod
    def _only(scores: Tensor, rows: Tensor, token: int) -> Tensor:
        others = torch.ones_like(scores, dtype=torch.bool)
        others[:, token] = False
        return scores.masked_fill(others & rows.unsqueeze(1), -torch.inf)

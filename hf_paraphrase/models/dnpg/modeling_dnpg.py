from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache, GenerationMixin
from transformers import initialization as init
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from ..layers.copying import Copying, add_copied_words, copying_loss, count_outside_words
from ..layers.encoder_decoder import EncoderDecoder, WritingPreTrainedModel
from ..layers.language_model_head import LanguageModelHeadMixin, language_model_loss, score_words, scored
from ..layers.precision import at_least_single
from ..layers.recurrent import AdditiveAttention, StackedLstm
from ..layers.scan import is_traced
from ..layers.token_ids import embed
from ..layers.transformer import (
    Dropout,
    Memory,
    MultiHeadAttention,
    PostNormLayer,
    additive_mask,
    causal_mask,
    position_states,
    sinusoids,
    to_additive,
)
from .configuration_dnpg import DnpgConfig
from .levels import (
    LEVELS,
    PHRASE,
    SENTENCE,
    Control,
    DnpgCache,
    DnpgDecoderOutput,
    DnpgEncoderOutput,
    DnpgModelOutput,
    DnpgSeq2SeqLMOutput,
    KeptPhrases,
    KeptTemplate,
    Separator,
    attended_words,
    count_template_positions,
    draw_levels,
    own_cache,
    read_levels,
)


class DnpgPreTrainedModel(WritingPreTrainedModel):
    config_class = DnpgConfig
    _no_split_modules = ["PostNormLayer"]
    _supports_sdpa = True

    def _init_weights(self, module: nn.Module) -> None:
        """Xavier's uniform matrices, zero biases, and embeddings of unit variance once they are scaled."""
        super()._init_weights(module)
        if isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.hidden_size**-0.5)


class DnpgEncoder(DnpgPreTrainedModel):
    """Separator and both levels' encoders."""

    _can_record_outputs = {
        "hidden_states": OutputRecorder(PostNormLayer, layer_name="phrase_layers"),
        "attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="phrase_layers"),
    }

    def __init__(self, config: DnpgConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.separator = Separator(config)
        self.embed_level = nn.Linear(len(LEVELS), config.hidden_size, bias=False)
        self.sentence_layers, self.phrase_layers = (
            nn.ModuleList(PostNormLayer(config, config.num_heads) for _ in range(number))
            for number in (config.sentence_layers, config.num_layers)
        )
        self.dropout = Dropout(config.dropout)
        self.post_init()

    @capture_outputs(tie_last_hidden_states=False)
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        source_levels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> DnpgEncoderOutput:
        if input_ids is None:
            raise ValueError("`input_ids` is missing: this model must know which words it reads")
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        count, known = 0, input_ids
        if self.config.copy:
            count = count_outside_words(input_ids, self.config.vocab_size, "`input_ids`")
            known = input_ids.where(input_ids < self.config.vocab_size, self.config.unk_token_id)
        words = embed(self.embed_tokens, known, "input_ids") * self.config.hidden_size**0.5
        logits = self.separator(words, mask)
        levels = self._choose_levels(logits, input_ids, mask, source_levels).to(words.dtype)
        phrase_states = self._encode_phrases(words, levels, mask, output_attentions)
        sentence_states = self._encode_template(words, levels, mask)
        return DnpgEncoderOutput(
            # Times its level, a state is zero at words of the other, and the separator learns by it.
            last_hidden_state=phrase_states * levels[..., PHRASE : PHRASE + 1],
            sentence_states=sentence_states * levels[..., SENTENCE : SENTENCE + 1],
            levels=levels,
            level_logits=logits,
            source_ids=input_ids,
            num_outside_words=count,
        )

    def _choose_levels(self, logits: Tensor, ids: Tensor, mask: Tensor, given: Tensor | None) -> Tensor:
        """One-hot levels; those given by the caller take precedence.

        The end mark is always the template's, and a word outside the vocabulary always a phrase's.
        """
        if given is None:
            levels = draw_levels(logits, self.config.separator_temperature if self.training else None)
        else:
            if given.shape != ids.shape or not (is_traced() or ((given == PHRASE) | (given == SENTENCE)).all()):
                raise ValueError("`source_levels` must hold 0 (phrase) or 1 (sentence) for each of the `input_ids`")
            levels = nn.functional.one_hot(given, len(LEVELS)).to(at_least_single(logits).dtype)
        ends = torch.as_tensor([-1] if self.config.eos_token_id is None else self.config.eos_token_id).to(ids)
        fixed = torch.stack((ids >= self.config.vocab_size, torch.isin(ids, ends)), dim=-1)
        levels = torch.where(fixed.any(-1, keepdim=True), fixed.to(levels.dtype), levels)
        return levels * mask.unsqueeze(-1).to(levels.dtype)

    def _encode_phrases(self, words: Tensor, levels: Tensor, mask: Tensor, output_attentions: bool | None) -> Tensor:
        places = mask.long().cumsum(1)
        distance = (places.unsqueeze(2) - places.unsqueeze(1)).abs()
        seen = (distance <= self.config.window_size // 2) & mask.bool().unsqueeze(1)
        window = to_additive(seen.unsqueeze(1), words.dtype)
        states = self.dropout(words + self.embed_level(levels) + position_states(mask, words))
        for layer in self.phrase_layers:
            states = layer(states, window, output_attentions=output_attentions)
        return states

    def _encode_template(self, words: Tensor, levels: Tensor, mask: Tensor) -> Tensor:
        is_phrase, is_template = (levels[..., level] > 0 for level in (PHRASE, SENTENCE))
        positions = count_template_positions(mask.bool(), is_phrase)
        states = words * levels[..., SENTENCE : SENTENCE + 1]
        states = self.dropout(states + sinusoids(positions, words.shape[-1], words.dtype))
        attended = additive_mask(attended_words(is_template, mask), words.dtype)
        for layer in self.sentence_layers:
            states = layer(states, attended)
        return states


class DnpgDecoder(DnpgPreTrainedModel):
    """Both levels' decoders, the pointer into the source, and the aggregator."""

    # The sentence level's weights over the source come first, then those of the phrase level.
    _can_record_outputs = {
        "hidden_states": OutputRecorder(PostNormLayer, layer_name="phrase_layers"),
        "attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="self_attention"),
        "cross_attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="memory_attentions"),
    }

    def __init__(self, config: DnpgConfig):
        super().__init__(config)
        size, first = config.hidden_size, config.sentence_layers
        self.sentence_layers, self.phrase_layers = (
            nn.ModuleList(PostNormLayer(config, config.num_heads, [(size, size)], index) for index in numbers)
            for numbers in (range(first), range(first, first + config.num_layers))
        )
        self.aggregator = StackedLstm(2 * size, config.aggregator_size, 1)
        self.score_levels = nn.Linear(config.aggregator_size, len(LEVELS))
        self.pointer = AdditiveAttention(size, size, size) if config.copy else None
        self.gate = nn.Linear(2 * size, 1) if config.copy else None
        self.dropout = Dropout(config.dropout)
        self.post_init()

    @capture_outputs(tie_last_hidden_states=False)
    def forward(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None = None,
        *,
        encoder_outputs: DnpgEncoderOutput,
        encoder_attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> DnpgDecoderOutput:
        past = 0 if cache is None else cache.get_seq_length()
        mask = causal_mask(attention_mask, inputs_embeds.shape[1], past, inputs_embeds)
        window = self._window(attention_mask, inputs_embeds, past)
        start = self.dropout(inputs_embeds + position_states(attention_mask, inputs_embeds, past))
        sentence, phrase = self._make_memories(encoder_outputs, encoder_attention_mask)
        sentence_states = phrase_states = start
        for layer in self.sentence_layers:
            sentence_states = layer(sentence_states, mask, [sentence], cache, output_attentions)
        for layer in self.phrase_layers:
            phrase_states = layer(phrase_states, torch.minimum(mask, window), [phrase], cache, output_attentions)
        states = torch.cat((phrase_states, sentence_states), dim=-1)
        own = own_cache(cache)
        aggregated, state, _ = self.aggregator(
            states, None if attention_mask is None else attention_mask[:, past:], None if own is None else own.state
        )
        if own is not None:
            own.state = state
        return DnpgDecoderOutput(
            last_hidden_state=states,
            cache=cache,
            level_logits=self.score_levels(aggregated),
            copying=None if self.pointer is None else self._copy(self.pointer, phrase_states, encoder_outputs),
        )

    def _window(self, attention_mask: Tensor | None, states: Tensor, past: int) -> Tensor:
        length = past + states.shape[1]
        places = torch.arange(length, device=states.device)[None]
        if attention_mask is not None:
            places = attention_mask.long().cumsum(1)
        near = places[:, past:, None] - places[:, None, :] < self.config.window_size
        return to_additive(near.unsqueeze(1), states.dtype)

    def _make_memories(self, encoder: DnpgEncoderOutput, attention_mask: Tensor | None) -> tuple[Memory, Memory]:
        """The words of each level; for a level without words, the whole source with zero states."""
        if attention_mask is None:
            attention_mask = torch.ones_like(encoder.source_ids)

        def memory_of(level: int, states: Tensor) -> Memory:
            attended = attended_words(encoder.levels[..., level] > 0, attention_mask)
            return Memory(states, states, additive_mask(attended, states.dtype))

        return memory_of(SENTENCE, encoder.sentence_states), memory_of(PHRASE, encoder.last_hidden_state)

    def _copy(self, pointer: AdditiveAttention, states: Tensor, encoder: DnpgEncoderOutput) -> Copying:
        """Point at phrase words: `σ(w·[s; c] + b)` is generated, the rest copied (See et al. 2017, section 2.2)."""
        memory, is_phrase = encoder.last_hidden_state, encoder.levels[..., PHRASE] > 0
        contexts, weights = pointer(pointer.query(states), pointer.project_keys(memory), memory, is_phrase)
        gate = at_least_single(cast(nn.Linear, self.gate)(torch.cat((states, contexts), dim=-1)))
        # Without a phrase word there is nothing to copy.
        can_copy = is_phrase.any(1)[:, None, None]
        log_generated = nn.functional.logsigmoid(gate).where(can_copy, torch.zeros_like(gate))
        weights = at_least_single(weights) * (gate.neg().sigmoid() * can_copy)
        return Copying(log_generated, weights, encoder.source_ids, is_phrase, encoder.num_outside_words)


class DnpgModel(EncoderDecoder, DnpgPreTrainedModel):
    """The decomposable neural paraphrase generator of Li et al. 2019, without the output layer.

    What rests on excerpts of the paper (abstract, sections 1 and 2): a paraphrase is made of patterns at the level of
    phrases, which are many and belong to a domain, and of sentences, templates such as "what is the reason of $x",
    which are general; a separator, which labels the words of the source by stacked LSTMs, Transformer encoders and
    decoders of one level each, with positional encodings, and an aggregator.

    What rests on slides that present it: both directions and the Gumbel-softmax of the separator, without its second
    LSTM, which reads the label before; the aggregator's LSTM, which there reads both levels' contexts and the last
    word, here both decoders' states.

    What rests on summaries: at the phrase level, attention within n = 3 words, copying and the larger capacity, at the
    sentence level attention to its own words alone; `P(y_t) = Σ_z P(z_t) P_z(y_t)`; that levels can be set by hand;
    that separator and aggregator also learn from weak labels at first.

    What is our reading: where one level alone may rewrite (`levels`), all words of the other are kept, without
    exception; the window counts the word itself, and in the decoder lies before it; a decoder's queries see the whole
    target (the phrase level: the window of it), its attention to the source the words of its level alone; the phrase
    level's encoder reads every word with an embedding of its level; a run of phrase words is one place of the
    template; the end mark is the template's, and a word outside the vocabulary a phrase's; one table of embeddings
    serves all; levels have one width and differ in depth.

    A model with `copy` takes words outside its vocabulary, in `input_ids` numbered from `vocab_size` on in each row
    anew; the pipeline does so by itself.
    """

    encoder_class, decoder_class = DnpgEncoder, DnpgDecoder
    encoder_output_class, encoder_output_reason = DnpgEncoderOutput, "it carries the levels"
    output_class = DnpgModelOutput

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        source_levels: Tensor | None = None,
        levels: Literal["phrase", "sentence", "both"] | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: DnpgEncoderOutput | None = None,
        cache: EncoderDecoderCache | None = None,
        use_cache: bool | None = None,
        output_levels: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> DnpgModelOutput:
        """Encode the source unless `encoder_outputs` are given, and run both decoders over their inputs.

        Other arguments are those of `EncoderDecoder.forward`.

        Args:
            source_levels: The level of each of these words, set by hand: 0 for phrase, 1 for sentence, `(batch,
                source_length)`; else the separator's.
            levels: Which level may rewrite; both by default. With "phrase" the words of the template are copied, and
                the phrase level writes freely in place of phrases. With "sentence" the phrase level writes exactly the
                words of phrases, in any order, and the sentence level writes freely around them.
            output_levels: Return the levels of source and target, and the scores that they follow from.
            kwargs: `output_hidden_states` to return the embeddings and every layer's output of the phrase level;
                `output_attentions` to return weights: of the phrase level's encoder, and of both decoders, those over
                the source as `cross_attentions`, the sentence level's layers first.

        Returns:
            `last_hidden_state` of shape `(batch, target_length, 2 * hidden_size)`, the phrase level's states and then
            the sentence level's, and what was asked for.

        Raises:
            ValueError: An id outside the vocabulary, a missing input, or an unknown level.
        """
        if levels not in (None, "both", *LEVELS):
            raise ValueError(f"`levels` must be phrase, sentence or both, not {levels!r}")
        outputs = self.encode(
            encoder_outputs, input_ids=input_ids, attention_mask=attention_mask, source_levels=source_levels, **kwargs
        )
        outside = outputs.num_outside_words if self.config.copy else None
        embeddings = self.embed_targets(decoder_input_ids, outside)
        if cache is None and (self.config.use_cache if use_cache is None else use_cache):
            cache = EncoderDecoderCache(DnpgCache(), DynamicCache())
        control = self._control(levels, outputs, cast(Tensor, decoder_input_ids), decoder_attention_mask, cache)
        decoded = self.decoder(
            embeddings * self.config.hidden_size**0.5,
            attention_mask=decoder_attention_mask,
            encoder_outputs=outputs,
            encoder_attention_mask=attention_mask,
            cache=cache,
            return_dict=True,
            **kwargs,
        )
        found: dict[str, Any] = {
            "aggregated_logits": decoded.level_logits,
            "copying": decoded.copying,
            "control": control,
        }
        if output_levels:
            scores = {"source": outputs.level_logits, "target": decoded.level_logits}
            found |= {f"{side}_level_logits": logits for side, logits in scores.items()}
            found |= {"source_levels": outputs.levels.argmax(-1), "target_levels": decoded.level_logits.argmax(-1)}
        return self.join_outputs(outputs, decoded, **found)

    def _control(
        self,
        levels: str | None,
        encoder: DnpgEncoderOutput,
        inputs: Tensor,
        mask: Tensor | None,
        cache: EncoderDecoderCache | None,
    ) -> Control | None:
        """The constraint; None lets both levels rewrite."""
        if levels not in LEVELS:
            return None
        size, own = self.config.vocab_size, own_cache(cache)
        ids, ends = encoder.source_ids, self.config.eos_token_id
        ends = torch.tensor(ends if isinstance(ends, list) else [ends], device=ids.device)
        if levels == "phrase":
            kept: Any = KeptTemplate.of(ids, encoder.levels, int(ends[0]))
        else:
            kept = KeptPhrases(ids, encoder.levels[..., PHRASE] > 0, ends, self.config.copy)
        past = 0 if own is None else own.get_seq_length()
        if mask is None:
            mask = torch.ones_like(inputs) if not past else inputs.new_ones(len(inputs), past + inputs.shape[1])
        # The first word of each row is the start token.
        is_word = (mask.bool() & (mask.long().cumsum(1) > 1))[:, past:]
        progress = kept.start() if own is None or own.progress is None else own.progress
        control, progress = kept.follow(inputs, is_word, progress, size)
        if own is not None:
            own.progress = progress
        return control


class DnpgForConditionalGeneration(LanguageModelHeadMixin, DnpgPreTrainedModel, GenerationMixin):
    """DNPG with the mixture of both levels' softmaxes, for training and `generate()`.

    `generate()` takes `levels` and `source_levels` too, as `forward` does; the latter also as a list of names for each
    source, all of one length.
    """

    _tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}
    output_class = DnpgSeq2SeqLMOutput
    has_plain_loss = False
    forward = scored(DnpgModel.forward)

    def __init__(self, config: DnpgConfig):
        super().__init__(config)
        self.model = DnpgModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def generate(self, *args: Any, source_levels: Any = None, **kwargs: Any) -> Any:
        """Generate as the base class does, with levels by hand, as names or as numbers."""
        if source_levels is not None and not isinstance(source_levels, Tensor):
            ids: Any = args[0] if args else kwargs.get("input_ids", kwargs.get("inputs"))
            source_levels = read_levels(source_levels, ids)
        kwargs |= {} if source_levels is None else {"source_levels": source_levels}
        return super().generate(*args, **kwargs)

    def score(self, outputs: DnpgModelOutput, labels: Tensor | None) -> dict[str, Any]:
        """Mix both levels: `log Σ_z P(z_t) P_z(y_t)`, and with `copy` words that the phrase level copies.

        In training, a model that copies leaves the logits of labels out.
        """
        words, log_levels = self.score_levels(outputs)
        copying, control = outputs.copying, outputs.control
        if copying is None:
            logits = _forbid((words + log_levels.unsqueeze(-1)).logsumexp(dim=2), control)
            return {"loss": language_model_loss(logits, labels), "logits": logits.to(self.dtype)}
        generated, weights = copying.log_generated.squeeze(-1), copying.weights
        if control is not None and control.copied is not None:
            generated = torch.full_like(generated, torch.finfo(generated.dtype).min / 4)
            weights = weights * control.copied
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        # What is missing to 1 is copied.
        shares = log_levels + torch.stack((generated, torch.zeros_like(generated)), dim=-1)
        mixed = (words + shares.unsqueeze(-1)).logsumexp(dim=2)
        joined = copying._replace(
            log_generated=mixed.logsumexp(dim=-1, keepdim=True),
            weights=weights * log_levels[..., PHRASE : PHRASE + 1].exp(),
        )
        is_loss_enough = self.training and labels is not None
        return {
            "loss": None if labels is None else copying_loss(mixed, joined, labels),
            "logits": None if is_loss_enough else _forbid(add_copied_words(mixed, joined), control).to(self.dtype),
            "copy_weights": weights,
        }

    def score_levels(self, outputs: DnpgModelOutput) -> tuple[Tensor, Tensor]:
        """What each level would write and how likely it is to write, as logarithms of probabilities.

        If one level is kept, only allowed words have probability; the sentence level's probability of a premature end
        goes to the phrase level, whose words are missing. Returns `(batch, target_length, 2, vocab_size)` and `(batch,
        target_length, 2)`.
        """
        states = outputs.last_hidden_state.unflatten(-1, (len(LEVELS), -1))
        words = at_least_single(score_words(self.lm_head, states))
        log_levels, control = at_least_single(outputs.aggregated_logits), outputs.control
        if control is None:
            return words.log_softmax(dim=-1), log_levels.log_softmax(dim=-1)
        lowest = torch.finfo(words.dtype).min
        words = words.masked_fill(~control.words, lowest).log_softmax(dim=-1)
        phrase, sentence = log_levels.masked_fill(~control.levels, lowest / 4).log_softmax(dim=-1).unbind(-1)
        early = sentence + words[..., SENTENCE, :].masked_fill(control.allowed, lowest / 4).logsumexp(dim=-1)
        return words, torch.stack((torch.logaddexp(phrase, early), sentence), dim=-1)


def _forbid(logits: Tensor, control: Control | None) -> Tensor:
    """Leave no chance to a word that no level may write, however many beams look for one."""
    if control is None:
        return logits
    # Words outside the vocabulary follow the others, and only the phrase level writes them.
    outside = control.levels[..., PHRASE : PHRASE + 1].expand(-1, -1, logits.shape[-1] - control.allowed.shape[-1])
    return logits.masked_fill(~torch.cat((control.allowed, outside), dim=-1), -torch.inf)

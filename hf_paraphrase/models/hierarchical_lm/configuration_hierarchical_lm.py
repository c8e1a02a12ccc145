from typing import Literal

from huggingface_hub.dataclasses import strict

from ..layers.portable import WritingConfig


@strict
class HierarchicalLmConfig(WritingConfig):
    r"""Configuration of the hierarchical language models of Traynor 2018, chapters 2 to 4.

    The defaults are the two-layer SARAh model with a GRU word decoder of section 3.2.

    Args:
        vocab_size: Number of symbols: characters, and the marks START (`bos_token_id`), END (`eos_token_id`), STOP,
            padding and the unknown one.
        embedding_size: Width of the character embeddings, which word encoder and word decoder share (section 2.2).
        max_characters: Characters per word; words are clipped or zero-padded; `generate()` writes no longer ones.
        max_words: Positions of a Transformer layer; Maximum words of `generate()`. Words behind the last position
            share it, as the END word behind `max_words` words does.
        word_encoder_sizes: Widths of the word encoder's layers.
        sentence_encoder: The layers of the sentence encoder and decoder: `"sarah"`, `"gru"` or `"transformer"`.
        num_layers: Layers of the sentence encoder, and of the decoder.
        num_heads: Heads of every attention; they split queries, keys and values.
        value_size: Width of values, of sentence vectors, and of a GRU layer.
        key_size: Width of keys and queries.
        sentence_projection: Each layer's sentence vector passes through its own GELU layer (section 4.2.3, the WDN
            model).
        output_projection: The sentence decoder's vectors go through one more GELU layer (there, too).
        word_decoder: What represents the characters so far: `"gru"` or `"mlp"`.
        word_decoder_hidden_size: Units of that GRU.
        word_decoder_sizes: Widths of the layers between this representation, joined by the word's vector, and the
            output layer.
        decode_window: In training, decode so many symbols from each word's vector, whatever words they belong to, STOP
            standing for the space between two (section 4.2.1); `None` for the symbols of the word alone. The loss
            outside training and `generate()` are always those of single words.
        sentence_noise: In training, noise `N(0, (w std(s))²)` with this w joins every sentence vector s (section 4.5).
        dropout: Probability of dropping the output of a layer.
        stop_token_id: The symbol that ends a word.

    Initial weights have no field: the thesis does not give them, and the models work with those that keep the scale of
    vectors from layer to layer, see `HierarchicalLmPreTrainedModel`.
    """

    model_type = "hierarchical_lm"
    abilities = frozenset({"embeds_sentences"})
    keys_to_ignore_at_inference = ["cache"]
    attribute_map = {"num_hidden_layers": "num_layers", "hidden_size": "value_size"}

    vocab_size: int = 306
    embedding_size: int = 32
    max_characters: int = 20
    max_words: int = 30
    word_encoder_sizes: list[int] | tuple[int, ...] = (512, 512, 512)
    sentence_encoder: Literal["sarah", "gru", "transformer"] = "sarah"
    num_layers: int = 2
    num_heads: int = 1
    value_size: int = 512
    key_size: int = 256
    sentence_projection: bool = False
    output_projection: bool = False
    word_decoder: Literal["gru", "mlp"] = "gru"
    word_decoder_hidden_size: int = 256
    word_decoder_sizes: list[int] | tuple[int, ...] = (512, 512, 256)
    decode_window: int | None = None
    sentence_noise: float | int = 0.0
    dropout: float | int = 0.1
    eos_token_id: int | None = 2
    stop_token_id: int = 4
    tie_word_embeddings: bool = False

    def validate_architecture(self):
        """Refuse combinations that no model of this family has; runs whenever a configuration is made."""
        sizes = ("vocab_size", "embedding_size", "max_characters", "max_words", "num_layers", "num_heads")
        self.check_sizes(*sizes, "value_size", "key_size", "word_decoder_hidden_size")
        self.check_dropout("dropout")
        for name in ("word_encoder_sizes", "word_decoder_sizes"):
            if not getattr(self, name) or min(getattr(self, name)) < 1:
                raise ValueError(f"`{name}` must name at least one layer, all of 1 unit or more")
        if self.sentence_noise < 0:
            raise ValueError(f"`sentence_noise` must not be negative: {self.sentence_noise}")
        if self.decode_window is not None and self.decode_window < 1:
            raise ValueError(f"`decode_window` must be `None` or at least 1, not {self.decode_window}")
        if self.value_size % self.num_heads or self.key_size % self.num_heads:
            raise ValueError(
                f"`num_heads` ({self.num_heads}) must divide `value_size` ({self.value_size}) and `key_size` "
                f"({self.key_size})"
            )
        if self.sentence_encoder == "gru" and self.key_size > self.value_size:
            raise ValueError("a GRU layer's keys are part of its `value_size` units: `key_size` must not be larger")
        if self.word_encoder_sizes[-1] < max(self.value_size, self.key_size):
            raise ValueError(
                f"the last of `word_encoder_sizes` ({self.word_encoder_sizes[-1]}) must be at least `value_size` "
                f"({self.value_size}) and `key_size` ({self.key_size}), which are split from it"
            )
        if self.tie_word_embeddings:
            raise ValueError("`tie_word_embeddings`: the input and output symbols of this family are never tied")

from typing import Literal

from huggingface_hub.dataclasses import strict

from ..layers.layer_weights import scale_initializer_range
from ..layers.portable import WritingConfig


@strict
class ResidualLstmConfig(WritingConfig):
    r"""Configuration of the LSTM encoder-decoders of Prakash et al. 2016, section 2.

    One class describes the four models of the paper's Table 2: sequence to sequence (`residual_interval=0`), with
    attention (`attention="additive"`), bi-directional (`bidirectional_encoder=True`) and residual
    (`residual_interval=2`, the default), each with any number of layers.

    Args:
        vocab_size: Number of words, special tokens included.
        embedding_size: Width of the word embeddings. Where it differs from `hidden_size`, a residual connection clips
            or zero-pads them (section 2.3).
        hidden_size: LSTM units in every layer.
        num_layers: Layers of the encoder and of the decoder; a bi-directional encoder has half as many, in both
            directions (section 4.2).
        residual_interval: A residual connection spans this many layers (`n` in section 2.3); 0 for none.
        bidirectional_encoder: Read the source in both directions.
        attention: `"additive"` (Bahdanau et al. 2015) or `None`.
        attention_size: Width of the space in which the attention compares states; `None` for `hidden_size`.
        dropout: Probability of dropping an LSTM layer's output (section 4.3).
        tie_word_embeddings: Use the decoder's input embeddings as output weights; needs equal widths.
        share_embeddings: One embedding table for source and target, which have one language and one vocabulary here.
        initializer_range: Weights start uniform in `[-initializer_range, initializer_range]`. The paper is silent;
            `None` for 0.08 · √(1000 / `hidden_size`): that is 0.08 at the 1,000 units of Sutskever et al. 2014, whose
            model it extends, and keeps the scale of the states at any other width.
    """

    model_type = "residual_lstm"
    keys_to_ignore_at_inference = ["cache"]
    attribute_map = {"num_hidden_layers": "num_layers"}
    former_options = {"input_feeding": False}

    vocab_size: int = 30332
    embedding_size: int = 512
    hidden_size: int = 512
    num_layers: int = 4
    residual_interval: int = 2
    bidirectional_encoder: bool = False
    attention: Literal["additive"] | None = None
    attention_size: int | None = None
    dropout: float | int = 0.5
    share_embeddings: bool = True
    initializer_range: float | None = None
    tie_word_embeddings: bool = False

    def __post_init__(self, **kwargs):
        if self.attention_size is None:
            self.attention_size = self.hidden_size
        if self.initializer_range is None:
            self.initializer_range = scale_initializer_range(self.hidden_size)
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuse combinations that no model of this family has; runs whenever a configuration is made."""
        self.check_sizes("vocab_size", "embedding_size", "hidden_size", "num_layers", "attention_size")
        self.check_dropout("dropout")
        if self.residual_interval < 0:
            raise ValueError(f"`residual_interval` must be 0 (no residual) or more, not {self.residual_interval}")
        if self.bidirectional_encoder and self.num_layers % 2:
            raise ValueError(f"`bidirectional_encoder` halves `num_layers`, which must be even, not {self.num_layers}")
        if self.tie_word_embeddings and self.embedding_size != self.hidden_size:
            raise ValueError(
                f"`tie_word_embeddings` needs `embedding_size` ({self.embedding_size}) equal to `hidden_size` "
                f"({self.hidden_size})"
            )

    @property
    def encoder_layers(self) -> int:
        """Layers of the encoder: half of `num_layers` where each runs in both directions."""
        return self.num_layers // 2 if self.bidirectional_encoder else self.num_layers

    @property
    def decoder_input_size(self) -> int:
        """Width of what the decoder's LSTM reads at each step."""
        return self.embedding_size

    @property
    def memory_size(self) -> int:
        """Width of the encoder's outputs."""
        return 2 * self.hidden_size if self.bidirectional_encoder else self.hidden_size

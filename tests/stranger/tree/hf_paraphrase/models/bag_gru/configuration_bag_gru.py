from huggingface_hub.dataclasses import strict

from ..layers.portable import WritingConfig


@strict
class BagGruConfig(WritingConfig):
    """Configuration of a GRU decoder that starts from the mean of its source's words.

    Args:
        vocab_size: Number of words, special tokens included.
        hidden_size: GRU units, and width of the embeddings.
        initializer_range: Weights start uniform in `[-initializer_range, initializer_range]`.
        tie_word_embeddings: Use the embeddings as output weights.
    """

    model_type = "bag_gru"
    keys_to_ignore_at_inference = ["cache"]

    vocab_size: int = 4000
    hidden_size: int = 128
    initializer_range: float = 0.08
    use_cache: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = 1
    is_encoder_decoder: bool | None = True
    tie_word_embeddings: bool = False

    def validate_architecture(self):
        """Refuse sizes that no model has; runs whenever a configuration is made."""
        for name in ("vocab_size", "hidden_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, not {getattr(self, name)}")

from huggingface_hub.dataclasses import strict
from transformers import MarianConfig

from ..layers.portable import WritingConfig


# `MarianConfig` first, or the fields that both have would get the defaults of `PreTrainedConfig`.
@strict
class SsruTransformerConfig(MarianConfig, WritingConfig):
    r"""Configuration of a Transformer whose decoder has recurrent units instead of self-attention (Kim et al. 2019).

    The fields of `MarianConfig`, with the sizes of Bergamot's "tiny" translators as defaults. Source, target
    and output layer share one table of words; whole layers are never dropped.

    Args:
        vocab_size: Number of words, special tokens included.
        d_model: Width of embeddings and layers.
        encoder_layers: Layers of the encoder.
        decoder_layers: Layers of the decoder.
        decoder_attention_heads: Heads of its attention to the source.
        max_position_embeddings: Longest text it is meant for, in tokens; its positions are sinusoids without a limit.
        scale_embedding: Multiply embeddings by √`d_model`.
    """

    model_type = "ssru_transformer"
    keys_to_ignore_at_inference = ["cache"]

    vocab_size: int = 16000
    d_model: int = 256
    encoder_layers: int = 6
    decoder_layers: int = 2
    encoder_ffn_dim: int = 1536
    decoder_ffn_dim: int = 1536
    encoder_attention_heads: int = 8
    decoder_attention_heads: int = 8
    max_position_embeddings: int = 256
    activation_function: str = "relu"
    scale_embedding: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int = 1
    forced_eos_token_id: int | list[int] | None = None

    def validate_architecture(self):
        """Refuse combinations that no model of this family has; runs whenever a configuration is made."""
        sizes = ("vocab_size", "d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim")
        self.check_sizes(*sizes)
        self.check_width("d_model", "encoder_attention_heads", "decoder_attention_heads")
        self.check_dropout("dropout", "attention_dropout", "activation_dropout")
        if not self.share_encoder_decoder_embeddings or self.decoder_vocab_size != self.vocab_size:
            raise ValueError(
                "source and target share one table of words: leave out `share_encoder_decoder_embeddings` and "
                "`decoder_vocab_size`"
            )
        if self.encoder_layerdrop or self.decoder_layerdrop:
            raise ValueError("whole layers are never dropped: leave out `encoder_layerdrop` and `decoder_layerdrop`")

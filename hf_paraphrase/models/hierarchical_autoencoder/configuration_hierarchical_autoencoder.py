from typing import Literal

from huggingface_hub.dataclasses import strict

from ..layers.layer_weights import scale_initializer_range
from ..layers.portable import WritingConfig


@strict
class HierarchicalAutoencoderConfig(WritingConfig):
    r"""Configuration of the paragraph autoencoders of Li et al. 2015, section 3.

    One class describes the three models of the paper's Table 3: standard (`hierarchy="none"`), hierarchical
    (`hierarchy="sentence"`, the default) and hierarchical with attention (`attention=True`). Defaults are the sizes
    for hotel reviews (sections 4.1 and 4.2).

    Args:
        vocab_size: Number of words, special tokens and the end-of-sentence mark included.
        hidden_size: LSTM units in every layer, and the width of the word embeddings (K in the paper).
        num_layers: Layers of each LSTM: of words and of sentences, in the encoder and in the decoder.
        hierarchy: `"sentence"` for LSTMs of words and of sentences, `"none"` for one LSTM over all words.
        attention: Let the sentence decoder attend to the source's sentences (section 3.4); needs the hierarchy.
        dropout: Probability of dropping an LSTM layer's output.
        cell_output: `"tanh"` for h = o·tanh(c), which has fused kernels; `"identity"` for h = o·c as the paper writes
            it (equations 3 and 15).
        reverse_source: Read the source backwards: the last sentence first, the last word of each first. End tokens
            stay at the end of their sentence or document.
        max_length_factor: Maximum length of `generate()` as a multiple of the source's words (section 4.2); `None` for
            no such limit.
        tie_word_embeddings: Use the decoder's input embeddings as output weights.
        share_embeddings: One embedding table for encoder and decoder.
        initializer_range: Weights start uniform in `[-initializer_range, initializer_range]`; `None` for
            0.08 · √(1000 / `hidden_size`), which is the paper's 0.08 at its width (section 4.2).
        end_of_sentence_token_id: Closes every sentence.
        eos_token_id: Closes the document; `end_of_document_token_id` is another name for it.
    """

    model_type = "hierarchical_autoencoder"
    abilities = frozenset({"rewrites_documents"})
    keys_to_ignore_at_inference = ["cache"]
    attribute_map = {
        "num_hidden_layers": "num_layers",
        "embedding_size": "hidden_size",
        "end_of_document_token_id": "eos_token_id",
    }

    vocab_size: int = 25000
    hidden_size: int = 1000
    num_layers: int = 4
    hierarchy: Literal["none", "sentence"] = "sentence"
    attention: bool = False
    dropout: float | int = 0.2
    cell_output: Literal["tanh", "identity"] = "tanh"
    reverse_source: bool = True
    max_length_factor: float | int | None = 1.5
    share_embeddings: bool = True
    initializer_range: float | None = None
    end_of_sentence_token_id: int = 4
    tie_word_embeddings: bool = False

    def __post_init__(self, **kwargs):
        if self.initializer_range is None:
            self.initializer_range = scale_initializer_range(self.hidden_size)
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuse combinations that no model of this family has; runs whenever a configuration is made."""
        self.check_sizes("vocab_size", "hidden_size", "num_layers")
        self.check_dropout("dropout")
        if self.attention and self.hierarchy == "none":
            raise ValueError("`attention` looks back at sentences: it needs `hierarchy='sentence'`")
        if self.max_length_factor is not None and not self.max_length_factor > 0:
            raise ValueError(f"`max_length_factor` must be greater than 0 or null, not {self.max_length_factor}")
        if not isinstance(self.eos_token_id, int):
            raise ValueError(f"`eos_token_id` must be the one id that closes a document, not {self.eos_token_id}")
        if not 0 <= self.end_of_sentence_token_id < self.vocab_size:
            raise ValueError(
                f"`end_of_sentence_token_id` must be in the vocabulary of {self.vocab_size} words, not "
                f"{self.end_of_sentence_token_id}"
            )
        if self.end_of_sentence_token_id == self.eos_token_id:
            raise ValueError("`end_of_sentence_token_id` and `eos_token_id` close different things: give two ids")

from huggingface_hub.dataclasses import strict

from ..layers.portable import WritingConfig


@strict
class DnpgConfig(WritingConfig):
    r"""Configuration of the decomposable neural paraphrase generator of Li et al. 2019.

    Its paper could be read in excerpts alone: no default below is its own but `window_size`, which a summary gives.
    The defaults in the code of Gu et al. 2022 are a width of 450, 9 heads, 3 layers and 1,024 inner units; ours are
    similar.

    Args:
        vocab_size: Number of words, special tokens included.
        hidden_size: Width of the embeddings and of every layer, at both levels.
        num_layers: Layers of the phrase level's encoder and of its decoder.
        sentence_layers: The same at the sentence level; fewer, for its patterns are few and general.
        num_heads: Heads of every attention.
        intermediate_size: Width of the feed-forward blocks.
        window_size: Words that a word sees at the phrase level, itself among them: as many before it as behind it in
            the encoder, all before it in the decoder.
        separator_size: Units of the separator's LSTM, in each direction.
        separator_layers: Its layers.
        separator_temperature: Of the Gumbel-softmax that draws levels in training.
        aggregator_size: Units of the aggregator's LSTM.
        dropout: Probability of dropping an embedding or a sub-layer's output.
        copy: Let the phrase level copy words of the source, those outside the vocabulary too.
        unk_token_id: The token that a copying model reads for a word outside the vocabulary.
        tie_word_embeddings: Use the embeddings as output weights.
    """

    model_type = "dnpg"
    abilities = frozenset({"copies_words", "has_levels"})
    keys_to_ignore_at_inference = ["cache", "source_levels", "target_levels", "copy_weights"]
    keys_to_ignore_at_inference += ["source_level_logits", "target_level_logits"]
    attribute_map = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}

    vocab_size: int = 8000
    hidden_size: int = 448
    num_layers: int = 3
    sentence_layers: int = 2
    num_heads: int = 8
    intermediate_size: int = 1024
    window_size: int = 3
    separator_size: int = 128
    separator_layers: int = 2
    separator_temperature: float | int = 1.0
    aggregator_size: int = 128
    dropout: float | int = 0.1
    copy: bool = True
    unk_token_id: int | None = 3
    tie_word_embeddings: bool = True

    def validate_architecture(self):
        """Refuse combinations that no model of this family has; runs whenever a configuration is made."""
        sizes = ("vocab_size", "hidden_size", "num_layers", "sentence_layers", "num_heads", "intermediate_size")
        self.check_sizes(*sizes, "window_size", "separator_size", "separator_layers", "aggregator_size")
        self.check_width("hidden_size", "num_heads")
        self.check_dropout("dropout")
        if not self.window_size % 2:
            raise ValueError(f"`window_size` has a word in its middle: it must be odd, not {self.window_size}")
        if not self.separator_temperature > 0:
            raise ValueError(f"`separator_temperature` must be greater than 0, not {self.separator_temperature}")
        if self.copy and self.unk_token_id is None:
            raise ValueError("`copy` reads words outside the vocabulary as `unk_token_id`: it must not be null")

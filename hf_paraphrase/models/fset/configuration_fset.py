from huggingface_hub.dataclasses import strict

from ..layers.portable import WritingConfig


@strict
class FsetConfig(WritingConfig):
    r"""Configuration of the fine-grained sample-based editing Transformer of Kazemnejad et al. 2020.

    Defaults follow the paper's Table 1. Two flags make the ablations of its Table 5 (the third, another
    retriever, is a matter of training).

    Args:
        vocab_size: Number of words, special tokens included (section 4.3).
        hidden_size: Width of the embeddings and of every layer, in Edit Provider and Edit Performer.
        num_layers: Layers of the Edit Performer's encoder and of its decoder.
        num_heads: Heads of its attentions.
        provider_layers: Layers of the Edit Provider's Target Encoder and of its Edit Encoder.
        provider_heads: Heads of their attentions.
        micro_edit_size: Width of a micro edit vector; smaller than the embeddings, so that they cannot carry q whole.
        edit_vector_size: Width of the edit vector z.
        intermediate_size: Width of the feed-forward blocks. The paper is silent; four times `hidden_size`, as in
            Vaswani et al. 2017.
        dropout: Probability of dropping an embedding or a sub-layer's output. The paper gives none; 0.1 is from
            Vaswani et al. 2017.
        initializer_range: Matrices of the layers start normally distributed with this deviation, as in other
            Transformers of the library; those between them, of micro edits, z and the decoder's inputs, keep variance.
            The paper is silent.
        use_edit_vector: Join z to the decoder's inputs; without it there is neither [AGR] nor the run from q to p.
        use_micro_edits: Attend to the micro edit vectors M in every decoder layer.
        tie_word_embeddings: Use the embeddings as output weights.
    """

    model_type = "fset"
    abilities = frozenset({"reads_pairs"})
    keys_to_ignore_at_inference = ["cache", "edit_vector", "micro_edit_vectors"]
    attribute_map = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}

    vocab_size: int = 8000
    hidden_size: int = 64
    num_layers: int = 6
    num_heads: int = 8
    provider_layers: int = 4
    provider_heads: int = 4
    micro_edit_size: int = 40
    edit_vector_size: int = 64
    intermediate_size: int | None = None
    dropout: float | int = 0.1
    initializer_range: float | int = 0.02
    use_edit_vector: bool = True
    use_micro_edits: bool = True
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs):
        if self.intermediate_size is None:
            self.intermediate_size = 4 * self.hidden_size
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuse combinations that no model of this family has; runs whenever a configuration is made."""
        sizes = ("vocab_size", "hidden_size", "num_layers", "num_heads", "provider_layers", "provider_heads")
        self.check_sizes(*sizes, "micro_edit_size", "edit_vector_size", "intermediate_size")
        self.check_width("hidden_size", "num_heads", "provider_heads")
        self.check_dropout("dropout")
        if not (self.use_edit_vector or self.use_micro_edits):
            raise ValueError(
                "with neither `use_edit_vector` nor `use_micro_edits` the retrieved pair is not used: that is a plain "
                "Transformer, such as BART or Marian of transformers"
            )

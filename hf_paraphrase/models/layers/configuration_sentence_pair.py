from typing import Literal

from huggingface_hub.dataclasses import strict

from .portable import PortableConfig


@strict
class SentencePairConfig(PortableConfig):
    r"""Base configuration of models that label or score sentence pairs.

    Args:
        vocab_size: Number of words, special tokens included.
        embedding_size: Width of the word embeddings.
        hidden_size: Units of every recurrent layer, and of the fully connected layer before the output.
        dropout: Probability of dropping an element of what enters the fully connected layer and the output layer.
        initializer_range: Weights start uniform in `[-initializer_range, initializer_range]`.
        problem_type: `"single_label_classification"`, with cross-entropy over `num_labels` labels, or `"ranking"`,
            with one score and max-margin loss. By default the first, unless `num_labels` is 1.
    """

    abilities = frozenset({"labels_pairs"})

    vocab_size: int = 30000
    embedding_size: int = 100
    hidden_size: int = 50
    dropout: float | int = 0.0
    initializer_range: float = 0.1
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    problem_type: Literal["single_label_classification", "ranking"] | None = None

    def __post_init__(self, **kwargs):
        if self.problem_type == "ranking" and self.id2label is None:
            kwargs.setdefault("num_labels", 1)
        super().__post_init__(**kwargs)
        if self.problem_type is None:
            self.problem_type = "ranking" if self.num_labels == 1 else "single_label_classification"

    def validate_architecture(self):
        """Refuse sizes that no model of this family has; runs whenever a configuration is made."""
        self.check_sizes("vocab_size", "embedding_size", "hidden_size")
        self.check_dropout("dropout")
        if self.problem_type == "ranking" and self.num_labels != 1:
            raise ValueError(f"`problem_type='ranking'` gives one score, not `num_labels={self.num_labels}`")

from typing import cast

from huggingface_hub.dataclasses import strict

from ..residual_lstm.configuration_residual_lstm import ResidualLstmConfig


@strict
class EditLstmConfig(ResidualLstmConfig):
    r"""Configuration of the two LSTMs that edit by a retrieved pair (p, q), baselines of Kazemnejad et al. 2020.

    By default the residual LSTM whose decoder reads, at every step, the edit vector of Guu et al. 2018
    (Seq2Seq+Ret); with `copy=True` and `attention="additive"` an LSTM with attention over x and a copy mechanism over
    p and q, as the editor of Hashimoto et al. 2018 (CopyEditor+Ret, RaE). Shared fields are documented in
    `ResidualLstmConfig`.

    Args:
        copy: Copy words from p and q instead of using the edit vector. Needs attention over x.
        edit_vector_size: Width of the edit vector, one half for inserted words, one for deleted ones; `None` for half
            of `hidden_size`, the ratio of Guu et al. 2018, which Kazemnejad et al. 2020, section 4.3, keep.
        unk_token_id: With `copy=True` the word that the model reads for one outside the vocabulary.
    """

    model_type = "edit_lstm"
    abilities = frozenset({"copies_words", "reads_pairs"})
    keys_to_ignore_at_inference = ["cache", "edit_vector", "copy_weights"]

    vocab_size: int = 8000
    copy: bool = False
    edit_vector_size: int | None = None
    unk_token_id: int | None = 3

    def __post_init__(self, **kwargs):
        if self.edit_vector_size is None:
            self.edit_vector_size = self.hidden_size // 2
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuse combinations that no model of this family has; runs whenever a configuration is made."""
        super().validate_architecture()
        size = cast(int, self.edit_vector_size)
        if size < 2 or size % 2:
            raise ValueError(f"`edit_vector_size` has two halves: it must be even, not {size}")
        if self.copy and self.attention is None:
            raise ValueError("`copy` reads x by attention: it needs `attention='additive'`")
        if self.copy and self.unk_token_id is None:
            raise ValueError("`copy` reads words outside the vocabulary as `unk_token_id`, which is missing")

    @property
    def decoder_input_size(self) -> int:
        """Input width of the decoder's LSTM."""
        return super().decoder_input_size + (0 if self.copy else cast(int, self.edit_vector_size))

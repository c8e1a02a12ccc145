from typing import Literal

from huggingface_hub.dataclasses import strict

from ..layers.sentence_pair import SentencePairConfig


@strict
class CoupledLstmConfig(SentencePairConfig):
    r"""Configuration of the coupled LSTMs of Liu et al. 2016: the paper's best model on SNLI by default.

    Shared fields are documented in `SentencePairConfig`.

    Args:
        hidden_size: Units of every LSTM, and of the fully connected layer before the output. Loosely coupled, a cell
            has two LSTMs and its h is twice as wide.
        coupling: `"tight"`, one memory fed from both sides (TC-LSTMs), or `"loose"`, two LSTMs that see each other's
            hidden states (LC-LSTMs).
        share_lstms: Loosely coupled, both LSTMs have the same weights: only so is the model nearly a fifth of the
            attention LSTM, as section 5 of the paper says.
        match_features: Beyond the paper: the gates of the first block also read, for every pair of words, whether they
            are equal and the cosine of their vectors, which no sum of `W x_i` and `U y_j` can express. Both are 0
            where a word is `unk_token_id`: few unknown words are the same (6 to 21% of those that met in two corpora).
        num_directions: 4, from every corner of the grid, or 1, from the first words.
        num_blocks: Blocks on top of each other, each all directions and their sum.
        share_directions: The directions of a block share their weights, as the paper's parameter count says.
        pooling_size: Rows and columns (p, q) of the grid that pooling leaves. The paper gives none; its 190k
            parameters leave room for (1, 1) only.
        max_grid_cells: Most pairs of words in a batch, padding included; None for any number. A cell takes about
            10 kB with the sizes of the paper, so that two long texts would fill any memory.
        unk_token_id: The word that `match_features` takes for none; None if there is no such word.
    """

    model_type = "coupled_lstm"
    attribute_map = {"num_hidden_layers": "num_blocks"}

    coupling: Literal["tight", "loose"] = "tight"
    share_lstms: bool = True
    match_features: bool = False
    num_directions: Literal[1, 4] = 4
    num_blocks: int = 4
    share_directions: bool = True
    pooling_size: list[int] | tuple[int, ...] = (1, 1)
    unk_token_id: int | None = 3
    max_grid_cells: int | None = 2**21

    def __post_init__(self, **kwargs):
        self.pooling_size = tuple(self.pooling_size)
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Refuse sizes that no model of this family has; runs whenever a configuration is made."""
        super().validate_architecture()
        if self.num_blocks < 1:
            raise ValueError(f"`num_blocks` must be at least 1, not {self.num_blocks}")
        if len(self.pooling_size) != 2 or min(self.pooling_size) < 1:
            raise ValueError(f"`pooling_size` must be two sizes (p, q), each at least 1, not {self.pooling_size}")

    @property
    def grid_size(self) -> int:
        """Width of h at each pair of words."""
        return self.hidden_size if self.coupling == "tight" else 2 * self.hidden_size

    @property
    def num_features(self) -> int:
        """Numbers that say of each pair of words how alike they are."""
        return 2 if self.match_features else 0

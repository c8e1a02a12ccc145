from typing import Literal

from huggingface_hub.dataclasses import strict

from ..layers.sentence_pair import SentencePairConfig


@strict
class PairLstmConfig(SentencePairConfig):
    r"""Configuration of the models that Liu et al. 2016 compare coupled LSTMs with.

    Shared fields are documented in `SentencePairConfig`.

    Args:
        encoder: `"nbow"`, the sum of each sentence's embeddings; `"single"`, one LSTM over X and then Y; `"parallel"`,
            an LSTM for each; `"attention"`, two LSTMs with the word-by-word attention of Rocktäschel et al. 2016.
    """

    model_type = "pair_lstm"

    encoder: Literal["nbow", "single", "parallel", "attention"] = "attention"

from typing import Literal

from huggingface_hub.dataclasses import strict

from ..layers.configuration_sentence_pair import SentencePairConfig


@strict
class PairLstmConfig(SentencePairConfig):
    r"""Configuration of the models that Liu et al. 2016 compare coupled LSTMs with.

    Args:
        vocab_size: Number of words, special tokens included.
        embedding_size: Width of the word embeddings.
        hidden_size: Units of every LSTM, and of the fully connected layer before the output.
        encoder: `"nbow"`, the sum of each sentence's embeddings; `"single"`, one LSTM over X and then Y; `"parallel"`,
            an LSTM for each; `"attention"`, two LSTMs with the word-by-word attention of Rocktäschel et al. 2016.
        dropout: Probability of dropping an element of what enters the fully connected layer and the output layer.
        initializer_range: Weights start uniform in `[-initializer_range, initializer_range]`.
        problem_type: As `SentencePairConfig` has it.
    """

    model_type = "pair_lstm"

    encoder: Literal["nbow", "single", "parallel", "attention"] = "attention"

"""What a model may lack, said with a reason in one list, and shown to be lacking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from huggingface_hub.errors import StrictDataclassError

# How a check of each of these ends where a model lacks it.
LACKS = {
    "gradient_checkpointing": (ValueError, "does not support (gradient|activation) checkpointing"),
    "encoder_states_of_every_word": (AssertionError, "states of the encoder for .* words"),
    # Whatever stops it: sizes that depend on values, a plain loop over words, an operator that cannot be traced.
    "export": (Exception, None),
    "inputs_embeds": (ValueError, "`inputs_embeds`: a .* must know which words it reads; pass `input_ids`"),
    "separate_embeddings": (AssertionError, "no `share_embeddings`"),
    "tied_embeddings": (StrictDataclassError, "tie_word_embeddings"),
}


class OptOuts:
    """For a mixin of checks: the classes of tests that use it say in `opt_outs` what their model lacks, and why."""

    opt_outs: dict[str, str] = {}

    @contextmanager
    def supports(self, capability: str) -> Iterator[None]:
        """Check what stands in the block; where the model lacks the capability, check that it ends as `LACKS` says."""
        error, message = LACKS[capability]
        if capability in self.opt_outs:
            with pytest.raises(error, match=message):
                yield
        else:
            yield

    def test_opt_outs_are_known_and_have_reasons(self):
        assert self.opt_outs.keys() <= LACKS.keys()
        assert all(len(reason.split()) > 3 for reason in self.opt_outs.values())

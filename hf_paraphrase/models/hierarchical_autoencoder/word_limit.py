from __future__ import annotations

import torch
from transformers import LogitsProcessor, PreTrainedConfig


class WordLimit(LogitsProcessor):
    """Limits the words of each row, then closes its sentence and document.

    Args:
        limits: Most words of each source's outputs, marks not counted, `(sources,)`.
        config: Has the ids of the marks and the vocabulary's size.
    """

    def __init__(self, limits: torch.Tensor, config: PreTrainedConfig):
        self.limits = limits
        self.end_of_sentence, self.end_of_document = config.end_of_sentence_token_id, config.eos_token_id
        self.frame = torch.tensor(frame_ids(config), device=limits.device)

    @classmethod
    def of(cls, source: torch.Tensor, real: torch.Tensor, factor: float, config: PreTrainedConfig) -> WordLimit:
        """Let outputs have `factor` times the words of their sources (Li et al. 2015, section 4.2)."""
        frame = torch.tensor(frame_ids(config), device=source.device)
        words = (real & ~torch.isin(source, frame)).sum(dim=1)
        return cls((words * factor).floor().long(), config)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        words = (~torch.isin(input_ids, self.frame)).sum(dim=1)
        full = words >= self.limits.repeat_interleave(len(input_ids) // len(self.limits))
        is_open = ~torch.isin(input_ids[:, -1], self.frame)
        mark = torch.where(is_open, self.end_of_sentence, self.end_of_document).unsqueeze(1)
        closing = torch.full_like(scores, -torch.inf).scatter(1, mark, 0.0)
        return torch.where(full.unsqueeze(1), closing, scores)


def frame_ids(config: PreTrainedConfig) -> list[int]:
    """The ids that are not words: marks, start and padding."""
    ids = {config.end_of_sentence_token_id, config.eos_token_id, config.decoder_start_token_id, config.pad_token_id}
    return sorted(ids - {None})

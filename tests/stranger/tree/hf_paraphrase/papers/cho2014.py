from __future__ import annotations

from .paper import Paper, describe_paraphraser

PAPER = Paper(
    "Cho et al. 2014",
    {"bag_gru": describe_paraphraser("a GRU of {hidden_size} units that starts from the mean of its source's words")},
)

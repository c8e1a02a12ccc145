"""Asking people: forms that show them outputs without names, and what their answers say."""

from __future__ import annotations

from .answers import AnswerKey, format_rating_results, read_answers, summarise_answers
from .forms import make_rating_forms, read_outputs

__all__ = [
    "AnswerKey",
    "format_rating_results",
    "make_rating_forms",
    "read_answers",
    "read_outputs",
    "summarise_answers",
]

"""What tables of results have to say about outputs that were written by retrieved pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["count_pairs", "describe_retrieval"]


def count_pairs(number: int) -> str:
    """By how many pairs the outputs of a row were written, as a label."""
    return f"{number} pair{'s' * (number > 1)} a row"


def describe_retrieval(results: Mapping[str, Any]) -> list[str]:
    """Sentences that say of a model that edits by pairs which ones it got; none for another model.

    Args:
        results: What `evaluate_paraphraser` returned.
    """
    numbers = {entry["num_neighbors"] for entry in results.get("generation", []) if "num_neighbors" in entry}
    if not numbers:
        return []
    if "retrieval" in results:
        share = f"for {results['retrieval']['rows_with_own_pair']:,} of {results['data']['rows']:,} rows"
        allowed = results["retrieval"]["allow_own_pair"]
        treated = "were allowed, the answer itself too" if allowed else "were left out"
        notes = [f"Pairs that share a row's source or reference ({share} there are any) {treated}."]
    else:
        notes = ["Pairs that share a row's source or reference were allowed, the answer itself too."]
    if len(numbers) > 1:
        notes.append(
            "One model with more or fewer pairs is not the K of Kazemnejad et al. 2020, appendix A.2, who train a "
            "model for each K (recipes fset-quora, fset-quora-k3, fset-quora-k5)."
        )
    return notes

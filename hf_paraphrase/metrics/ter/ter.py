from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_texts
from hf_paraphrase.metrics.ter.scoring import ter

__all__ = ["Ter"]


class Ter(CheckedMetric):
    """TER: corpus translation edit rate with sacrebleu's figures, several times as fast.

    How many insertions, deletions, substitutions and shifts of runs of words turn the predictions into their closest
    references, divided by the mean length of the references. Lower is better. The figures and the signature are those
    of sacrebleu (https://github.com/mjpost/sacrebleu), which follows tercom; searches for shifts that cannot change a
    figure are left out, and the others run on a faster edit distance.

    Examples:
        >>> load_metric("ter").compute(predictions=["b c d a"], references=["a b c d"])["score"]
        25.0

    Limits:
        - Finding the fewest edits with shifts is intractable; like tercom, this is a greedy search, so TER is an upper
          bound.
        - With several references the length is their mean, while the edits are those of the closest one.
    """

    function = staticmethod(ter)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{snover-etal-2006-study, title = {A study of translation edit rate with targeted human annotation},
  author = {Snover, Matthew and Dorr, Bonnie and Schwartz, Rich and Micciulla, Linnea and Makhoul, John},
  booktitle = {AMTA}, year = {2006}, url = {https://aclanthology.org/2006.amta-papers.25}}
"""

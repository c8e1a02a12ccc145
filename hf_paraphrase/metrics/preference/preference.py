from __future__ import annotations

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.preference.scoring import check_judgements, preference

__all__ = ["Preference"]


class Preference(CheckedMetric):
    """Preference: wins, ties and losses of human judgements, with Cohen's and Fleiss' kappa.

    How often raters preferred the first of two systems, and how far they agreed beyond chance. `read_judgements` of
    `hf_paraphrase.metrics.preference.scoring` reads the inputs from a CSV file with columns item, rater and choice.

    Examples:
        >>> metric = load_metric("preference")
        >>> metric.compute(items=["1", "1"], raters=["ann", "bob"], choices=["win", "win"])["wins"]
        2

    Limits:
        - Show raters the two outputs in random order, and undo that order before counting: the forms of
          `hf-paraphrase rating make` and `hf-paraphrase rating read` do both.
        - For ratings on a scale use `cohen_kappa` and `fleiss_kappa` of `hf_paraphrase.metrics.preference.agreement`.
    """

    function = staticmethod(preference)
    _check = staticmethod(check_judgements)
    _citation = """
@article{cohen-1960, title = {A coefficient of agreement for nominal scales}, author = {Cohen, Jacob},
  journal = {Educational and Psychological Measurement}, year = {1960}}
@article{fleiss-1971, title = {Measuring nominal scale agreement among many raters}, author = {Fleiss, Joseph},
  journal = {Psychological Bulletin}, year = {1971}}
@inproceedings{kazemnejad-etal-2020-paraphrase, title = {Paraphrase generation by learning how to edit from samples},
  author = {Kazemnejad, Amirhossein and Salehi, Mohammadreza and Soleymani Baghshah, Mahdieh}, booktitle = {ACL},
  year = {2020}, url = {https://aclanthology.org/2020.acl-main.535}}
"""

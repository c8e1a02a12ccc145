from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy
from hf_paraphrase.metrics.inputs import check_texts


class EmbeddingGreedy(CheckedMetric):
    function = staticmethod(embedding_greedy)
    _check = staticmethod(check_texts)
    _citation = """
@inproceedings{rus-lintean-2012-comparison, title = {A comparison of greedy and optimal assessment of natural language
  student input using word-to-word similarity metrics}, author = {Rus, Vasile and Lintean, Mihai}, booktitle = {BEA},
  year = {2012}, url = {https://aclanthology.org/W12-2018}}
@inproceedings{forgues-etal-2014-bootstrapping, title = {Bootstrapping dialog systems with word embeddings},
  author = {Forgues, Gabriel and Pineau, Joelle and Larchevêque, Jean-Marie and Tremblay, Réal},
  booktitle = {NIPS workshop on modern machine learning and natural language processing}, year = {2014}}
"""

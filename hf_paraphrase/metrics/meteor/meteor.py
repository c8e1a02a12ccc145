from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.meteor.scoring import meteor


class Meteor(CheckedMetric):
    function = staticmethod(meteor)

from hf_paraphrase.metrics.checked_metric import CheckedMetric
from hf_paraphrase.metrics.inputs import check_losses
from hf_paraphrase.metrics.nits_per_character.scoring import nits_per_character


class NitsPerCharacter(CheckedMetric):
    function = staticmethod(nits_per_character)
    _check = staticmethod(lambda *, losses, characters: check_losses(losses, "characters", characters))

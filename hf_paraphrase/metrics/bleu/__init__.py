from .. import LOWERCASE, Scored

SCORED = Scored(("bleu_4", "bleu_2"), options=LOWERCASE)

from .. import Scored

SCORED = Scored(("rouge1", "rouge2", "rougeL", "rougeW"))

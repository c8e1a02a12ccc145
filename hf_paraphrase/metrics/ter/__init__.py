from ..scored import Scored

SCORED = Scored(("ter",))

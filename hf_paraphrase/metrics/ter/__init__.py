from .. import Scored

SCORED = Scored(("ter",))

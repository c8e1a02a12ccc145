from .. import Scored

SCORED = Scored(("meteor",))

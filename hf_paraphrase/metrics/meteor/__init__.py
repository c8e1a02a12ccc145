from ..scored import Scored

SCORED = Scored(("meteor",))

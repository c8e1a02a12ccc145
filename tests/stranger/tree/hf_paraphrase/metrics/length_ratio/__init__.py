from ..scored import Scored

SCORED = Scored(("length_ratio",), inputs=("sources",))

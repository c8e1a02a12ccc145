from .. import Scored

SCORED = Scored(("length_ratio",), inputs=("sources",))

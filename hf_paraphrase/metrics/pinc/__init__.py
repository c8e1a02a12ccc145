from .. import LOWERCASE, Scored

SCORED = Scored(("pinc",), inputs=("sources",), options=LOWERCASE)

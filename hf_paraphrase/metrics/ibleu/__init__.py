from .. import LOWERCASE, Scored

SCORED = Scored(("ibleu",), inputs=("references", "sources"), options=LOWERCASE)

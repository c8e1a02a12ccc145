from .. import LOWERCASE, Scored

SCORED = Scored(("embedding_greedy", "embedding_average", "embedding_extrema"), options=LOWERCASE)

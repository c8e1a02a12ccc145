# First of all, since its import registers every architecture: within the import of one, that would not find it whole.
import transformers  # noqa: F401

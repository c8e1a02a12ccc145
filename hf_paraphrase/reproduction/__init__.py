"""Tables of the papers made again: trained, evaluated, and their claims judged."""

"""Decoding: searches, the choice among what they find, and the text2text-generation pipeline around them."""

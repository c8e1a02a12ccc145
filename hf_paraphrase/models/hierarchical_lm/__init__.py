"""The hierarchical language models of Traynor 2018."""

from __future__ import annotations

from collections.abc import Sequence


class EditDistance:
    """Edit distance to one reference, a column of the table at a time as the bits of one integer.

    Columns can be kept, so that a text with the same beginning starts from where the two part.

    Source: Hyyrö 2003, after Myers 1999.
    """

    def __init__(self, reference: Sequence[str]):
        self._positions: dict[str, int] = {}
        for index, word in enumerate(reference):
            self._positions[word] = self._positions.get(word, 0) | 1 << index
        self._every, self._last = (1 << len(reference)) - 1, 1 << len(reference) >> 1
        # Bits say where a cell is one more, or one less, than the cell above it; then the distance.
        self._start = (self._every, 0, len(reference))

    def __call__(self, words: Sequence[str]) -> int:
        """Number of insertions, deletions and substitutions of words."""
        return self._advance(self._start, words)[2]

    def columns(self, words: Sequence[str]) -> list[tuple[int, int, int]]:
        """The columns of all beginnings of a text, from the empty one on."""
        columns = [self._start]
        for word in words:
            columns.append(self._advance(columns[-1], [word]))
        return columns

    def resume(self, column: tuple[int, int, int], words: Sequence[str]) -> int:
        """The distance of the text that goes on with `words` after the beginning that a column belongs to."""
        return self._advance(column, words)[2]

    def trace(self, columns: Sequence[tuple[int, int, int]], words: Sequence[str]) -> str:
        """One cheapest way from the text to the reference, an operation a letter, as sacrebleu writes it.

        A blank keeps a word, `s` replaces it, `d` deletes it and `i` inserts one of the reference. Of equally cheap
        ways the one that, read from the end, keeps or replaces before it deletes, and deletes before it inserts.
        """
        operations, i, j = [], len(words), self._every.bit_length()
        while i or j:
            cell = self._cell(columns, i, j)
            matches = i and j and self._positions.get(words[i - 1], 0) >> (j - 1) & 1
            if i and j and cell == self._cell(columns, i - 1, j - 1) + (not matches):
                operations.append(" " if matches else "s")
                i, j = i - 1, j - 1
            elif i and cell == self._cell(columns, i - 1, j) + 1:
                operations.append("d")
                i -= 1
            else:
                operations.append("i")
                j -= 1
        return "".join(reversed(operations))

    def _cell(self, columns: Sequence[tuple[int, int, int]], i: int, j: int) -> int:
        """Distance between the first `i` words of the text and the first `j` of the reference."""
        above, (more, less, _) = (1 << j) - 1, columns[i]
        return i + (more & above).bit_count() - (less & above).bit_count()

    def _advance(self, column: tuple[int, int, int], words: Sequence[str]) -> tuple[int, int, int]:
        (more, less, distance), every, last, find = column, self._every, self._last, self._positions.get
        for word in words:
            matches = find(word, 0)
            diagonal = (((matches & more) + more) ^ more) | matches | less
            right_more, right_less = less | (every & ~(diagonal | more)), more & diagonal
            if right_more & last:
                distance += 1
            elif right_less & last:
                distance -= 1
            right_more, right_less = right_more << 1 | 1, right_less << 1
            more, less = every & (right_less | ~(diagonal | right_more)), every & right_more & diagonal
        # Against an empty reference every word is one too many.
        return more, less, distance if every else column[2] + len(words)

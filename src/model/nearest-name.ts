/** The known name that is most similar to a misspelt one. */
export function nearestName<Name extends string>(word: string, known: readonly Name[]): Name | undefined {
  const limit = Math.max(2, Math.floor(word.length / 3));
  let nearest: Name | undefined;
  let best = limit + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < best && keepsHalf(word, candidate, distance)) [nearest, best] = [candidate, distance];
  }
  return nearest;
}

/** Two edits may replace a whole short word: it is then another word, not a misspelling. */
function keepsHalf(word: string, candidate: string, distance: number): boolean {
  return 2 * distance <= Math.max(word.length, candidate.length);
}

/**
 * The number of letters to insert, delete or replace, or of neighbours to swap, to turn one word into the other
 * (optimal string alignment).
 */
function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let line = 1; line <= from.length; line += 1) {
    const next = [line];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (row[column - 1] ?? 0) + (from[line - 1] === to[column - 1] ? 0 : 1);
      const isSwapped = from[line - 1] === to[column - 2] && from[line - 2] === to[column - 1];
      const swapped = isSwapped ? (beforeLast[column - 2] ?? Infinity) + 1 : Infinity;
      next.push(Math.min(replaced, swapped, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    [beforeLast, row] = [row, next];
  }
  return row[to.length] ?? 0;
}

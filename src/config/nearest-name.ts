/** The known name that a mistyped one most likely meant; `undefined` when none is close. */
export function nearestName(given: string, known: Iterable<string>): string | undefined {
  if (given.length > 64) return undefined;
  const wanted = given.toLowerCase();
  let nearest: string | undefined;
  // A third of the letters may be wrong: more is another word.
  let limit = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of known) {
    const distance = editDistance(wanted, name.toLowerCase());
    if (distance >= limit) continue;
    limit = distance;
    nearest = name;
  }
  return nearest;
}

/** Letters to insert, remove, change or swap with their neighbour, to get from one word to the other. */
function editDistance(from: string, to: string): number {
  let beforePrevious: readonly number[] = [];
  let previous: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current: number[] = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (same ? 0 : 1),
        swapped ? at(beforePrevious, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

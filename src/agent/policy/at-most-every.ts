/** Does the work, unless it was done a short time ago: then returns what it returned. */
export function atMostEvery<Result>(milliseconds: number, elapsed: () => number, work: () => Result): () => Result {
  let last: { readonly at: number; readonly result: Result } | undefined;
  return () => {
    if (last === undefined || elapsed() - last.at >= milliseconds) last = { at: elapsed(), result: work() };
    return last.result;
  };
}

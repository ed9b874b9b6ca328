/** Splits what the test runner prints into blocks of one file each, so that lanes running at once can be read. */
const FILE_HEADER = /^(?:::group::)?\S+\.test\.ts:\n/m;

export async function* blocksOf(printed: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let block = "";
  for await (const bytes of printed) {
    block += decoder.decode(bytes, { stream: true });
    for (let next = nextHeader(block); next > 0; next = nextHeader(block)) {
      yield block.slice(0, next);
      block = block.slice(next);
    }
  }
  if (block !== "") yield block;
}

/** Where the second file begins; -1 if it has not begun. The header of the first is not searched for. */
function nextHeader(block: string): number {
  const first = block.indexOf("\n") + 1;
  const found = block.slice(first).search(FILE_HEADER);
  return found < 0 ? -1 : first + found;
}

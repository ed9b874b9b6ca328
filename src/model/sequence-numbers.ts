/**
 * Sequence numbers start at the clock's nanoseconds, far above 2^53, and
 * JSON.parse would round them. They are quoted in the text before it is parsed;
 * alternatives were slower (docs/decisions/block-codec.md).
 */
const MARK = '"sequenceNumber';
// Sticky: a pattern search through the whole text takes a new process a millisecond, `indexOf` almost nothing.
const MEMBER = /"sequenceNumber(?:"\s*:\s*\d+|ForAllocation"\s*:\s*\{[^{}]*\})/y;
const NUMBER_AFTER_COLON = /(:\s*)(\d+)/g;

/** Returns the same JSON with the sequence numbers of blocks as strings; works for one block and for lists. */
export function quoteSequenceNumbers(text: string): string {
  let quoted = "";
  let done = 0;
  for (let at = text.indexOf(MARK); at >= 0; at = text.indexOf(MARK, at + MARK.length)) {
    // A quote after a backslash is inside a string.
    const member = text[at - 1] === "\\" ? undefined : memberAt(text, at);
    if (member === undefined) continue;
    quoted += text.slice(done, at) + member.replace(NUMBER_AFTER_COLON, '$1"$2"');
    done = at + member.length;
  }
  return quoted + text.slice(done);
}

function memberAt(text: string, at: number): string | undefined {
  MEMBER.lastIndex = at;
  return MEMBER.exec(text)?.[0];
}

/** Reads a quoted or plain whole number; `undefined` for anything else, including a plain number that was rounded. */
export function readSequenceNumber(value: unknown): bigint | undefined {
  if (typeof value === "string" && /^\d+$/.test(value)) return BigInt(value);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  return undefined;
}

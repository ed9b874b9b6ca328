/**
 * Sequence numbers begin at the nanoseconds of the clock, far above 2^53, where
 * JSON.parse would round them. They are put in quotes in the text before it is
 * parsed; other ways were slower (docs/decisions/block-codec.md).
 */
const MARK = '"sequenceNumber';
// Sticky: a search through the whole text by pattern costs a cold process a millisecond, `indexOf` next to nothing.
const MEMBER = /"sequenceNumber(?:"\s*:\s*\d+|ForAllocation"\s*:\s*\{[^{}]*\})/y;
const NUMBER_AFTER_COLON = /(:\s*)(\d+)/g;

/** The same JSON with the sequence numbers of blocks as strings; works on one block and on lists of them. */
export function quoteSequenceNumbers(text: string): string {
  let quoted = "";
  let done = 0;
  for (let at = text.indexOf(MARK); at >= 0; at = text.indexOf(MARK, at + MARK.length)) {
    // A quote behind a backslash stands inside a string.
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

/** A quoted or plain whole number; `undefined` for anything else, also for a plain one that was rounded. */
export function readSequenceNumber(value: unknown): bigint | undefined {
  if (typeof value === "string" && /^\d+$/.test(value)) return BigInt(value);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  return undefined;
}

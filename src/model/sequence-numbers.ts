/**
 * Sequence numbers begin at the nanoseconds of the clock, far above 2^53, where
 * JSON.parse would round them. They are put in quotes in the text before it is
 * parsed.
 */
const SEQUENCE = /(?<!\\)"sequenceNumber"\s*:\s*(\d+)/g;
const PER_ALLOCATION = /(?<!\\)"sequenceNumberForAllocation"\s*:\s*\{[^{}]*\}/g;
const NUMBER_AFTER_KEY = /(:\s*)(\d+)/g;

/** The same JSON with the sequence numbers of blocks as strings; works on one block and on lists of them. */
export function quoteSequenceNumbers(text: string): string {
  return text
    .replace(SEQUENCE, '"sequenceNumber":"$1"')
    .replace(PER_ALLOCATION, (member) => member.replace(NUMBER_AFTER_KEY, '$1"$2"'));
}

/** A quoted or plain whole number; `undefined` for anything else, also for a plain one that was rounded. */
export function readSequenceNumber(value: unknown): bigint | undefined {
  if (typeof value === "string" && /^\d+$/.test(value)) return BigInt(value);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  return undefined;
}

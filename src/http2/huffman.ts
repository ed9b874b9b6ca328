/**
 * The code in which header fields may be written (RFC 7541, appendix B).
 *
 * It is canonical: within a length the codes count upwards with their symbols,
 * and from one length to the next they go on. So the lengths tell all of it.
 */
import { Http2Failure } from "./failure.ts";

/** How many bits each byte takes, then the end of a text: a digit of base 36 for each. */
const LENGTHS = [
  "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca",
  "d67777777777777777777777878djde6f56565666577666567655677777fbeds",
  "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn",
  "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq",
  "u",
];

const END_OF_TEXT = 256;
const LONGEST = 30;

/** The codes of one length: the first of them, and what they stand for, in their order. */
interface Codes {
  readonly first: number;
  readonly symbols: readonly number[];
}

let known: readonly Codes[] | undefined;

export function decodeHuffman(bytes: Uint8Array): Uint8Array {
  known ??= codesByLength();
  const text: number[] = [];
  let code = 0;
  let length = 0;
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    code = (code << 1) | (((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1);
    length += 1;
    const symbol = symbolOf(code, known[length]);
    if (symbol === undefined) continue;
    if (symbol === END_OF_TEXT) throw notACode();
    text.push(symbol);
    code = 0;
    length = 0;
  }
  // The last byte is filled up with ones, the beginning of the longest code.
  if (length > 7 || code !== (1 << length) - 1) throw notACode();
  return Uint8Array.from(text);
}

function symbolOf(code: number, codes: Codes | undefined): number | undefined {
  if (codes === undefined) throw notACode();
  return codes.symbols[code - codes.first];
}

function codesByLength(): readonly Codes[] {
  const lengths = [...LENGTHS.join("")].map((digit) => Number.parseInt(digit, 36));
  const codes: Codes[] = [];
  let next = 0;
  for (let length = 0; length <= LONGEST; length++) {
    const symbols = lengths.flatMap((each, symbol) => (each === length ? [symbol] : []));
    codes.push({ first: next, symbols });
    next = (next + symbols.length) << 1;
  }
  return codes;
}

function notACode(): Http2Failure {
  return new Http2Failure("broken", "a header field is not written in the code it claims");
}

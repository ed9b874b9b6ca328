/** AS numbers of BGP: a whole number, or dotted notation like "1.10". */
import * as v from "valibot";

const LARGEST_AS_NUMBER = 2 ** 32 - 1;
const LARGEST_HALF = 2 ** 16 - 1;

export const NOT_AN_AS_NUMBER = `is not an AS number; use a whole number from 1 to ${LARGEST_AS_NUMBER}, or dotted notation like "1.10"`;

export const asNumberField = v.pipe(
  v.union([v.number(), v.string()]),
  v.check((value) => parseAsNumber(value) !== undefined, NOT_AN_AS_NUMBER),
);

/** `undefined` if it is not one. */
export function parseAsNumber(value: number | string): number | undefined {
  // In YAML, 1.10 without quotes is the number 1.1.
  if (typeof value === "number" && !Number.isInteger(value)) return undefined;
  const text = String(value);
  const [high = "", low] = text.split(".");
  if (low === undefined) return /^\d{1,10}$/.test(high) ? inRange(Number(high)) : undefined;
  if (!/^\d{1,5}\.\d{1,5}$/.test(text) || Number(high) > LARGEST_HALF || Number(low) > LARGEST_HALF) return undefined;
  return inRange(Number(high) * (LARGEST_HALF + 1) + Number(low));
}

function inRange(number: number): number | undefined {
  return number >= 1 && number <= LARGEST_AS_NUMBER ? number : undefined;
}

/**
 * Which rules accepted a connection, as the 128 bits of its label in the kernel's connection table.
 *
 *   bits 0 to 31     of others, never written here
 *   bits 32 to 127   a field of 24 bits for each point that judges, in the order of POINTS
 *
 * A rule can only add bits to a label. So a field has exactly 12 of its 24 bits: if two rules wrote it, it has more, and is not
 * taken for a third one. There are 2,704,156 such fields; number 1 is the first. Pure.
 */
import { POINTS, type Point } from "../policy/point.ts";

const LABEL_BYTES = 16;
const FIELD_BITS = 24;
const SET_BITS = 12;
const FIRST_FIELD_BYTE = 4;
const FIELD_BYTES = FIELD_BITS / 8;

/** `CHOICES[n][k]`: in how many ways k of n bits can be set. */
const CHOICES: readonly (readonly number[])[] = pascalTriangle(FIELD_BITS);
export const MOST_RULE_NUMBERS = choices(FIELD_BITS, SET_BITS);

/** What a field says: a rule, none, or that several rules (or somebody else) wrote it. */
export type LabelField = { readonly kind: "rule"; readonly number: number } | { readonly kind: "none" | "several" };

/** The label that a rule adds. `number`: from 1. */
export function labelOf(point: Point, number: number): Uint8Array {
  if (!Number.isInteger(number) || number < 1 || number > MOST_RULE_NUMBERS)
    throw new RangeError(`${number} is not a number of a rule; use 1 to ${MOST_RULE_NUMBERS}`);
  const label = new Uint8Array(LABEL_BYTES);
  const field = fieldOf(number - 1);
  const start = startOf(point);
  for (let index = 0; index < FIELD_BYTES; index++) label[start + index] = (field >>> (8 * index)) & 0xff;
  return label;
}

export function readLabel(label: Uint8Array, point: Point): LabelField {
  const start = startOf(point);
  let field = 0;
  for (let index = 0; index < FIELD_BYTES; index++) field |= (label[start + index] ?? 0) << (8 * index);
  if (field === 0) return { kind: "none" };
  return countBits(field) === SET_BITS ? { kind: "rule", number: rankOf(field) + 1 } : { kind: "several" };
}

function startOf(point: Point): number {
  return FIRST_FIELD_BYTE + POINTS.indexOf(point) * FIELD_BYTES;
}

/** The combination with this rank, from 0, in the order of their values. */
function fieldOf(rank: number): number {
  let [field, left, rest] = [0, SET_BITS, rank];
  for (let bit = FIELD_BITS - 1; left > 0; bit--) {
    const below = choices(bit, left);
    if (rest < below) continue;
    field |= 1 << bit;
    rest -= below;
    left -= 1;
  }
  return field;
}

function rankOf(field: number): number {
  let [rank, found] = [0, 0];
  for (let bit = 0; bit < FIELD_BITS; bit++) {
    if ((field & (1 << bit)) === 0) continue;
    found += 1;
    rank += choices(bit, found);
  }
  return rank;
}

function choices(bits: number, set: number): number {
  return CHOICES[bits]?.[set] ?? 0;
}

function pascalTriangle(last: number): readonly (readonly number[])[] {
  const rows: number[][] = [[1]];
  for (let bits = 1; bits <= last; bits++) {
    const above = rows[bits - 1] ?? [];
    rows.push(Array.from({ length: bits + 1 }, (_, set) => (above[set - 1] ?? 0) + (above[set] ?? 0)));
  }
  return rows;
}

function countBits(field: number): number {
  let count = 0;
  for (let rest = field; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

/**
 * The value of a bandwidth annotation: a quantity in bits per second as the orchestrator
 * writes it, such as `10M`, `1Gi`, `500k`, `1.5M` or `2e6`.
 * Pure and exact: decimal fractions are never converted to floating point.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";

const QUANTITY = /^\+?(\d*)(?:\.(\d*))?(?:([numkMGTPE])|([KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/;

const DECIMAL_EXPONENT: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const BINARY_EXPONENT: Readonly<Record<string, bigint>> = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };

const MINIMUM = 10n ** 3n;
const MAXIMUM = 10n ** 15n;

/** Whoever creates pods chooses the text, and the time to compute with its digits grows with their square. */
const LONGEST_QUANTITY = 64;

/** Returns bits per second, with a fraction rounded up. `annotation` is the key, for the error. */
export function parseBandwidthQuantity(annotation: string, text: string): bigint {
  if (text.length > LONGEST_QUANTITY) {
    throw invalid(annotation, text, `it has ${text.length} characters; use at most ${LONGEST_QUANTITY}`);
  }
  const bits = parseQuantity(text);
  if (bits === undefined) throw invalid(annotation, text, "it is not a quantity such as 10M, 1Gi or 500k");
  if (bits < MINIMUM || bits > MAXIMUM) throw invalid(annotation, text, "it must be from 1k to 1P bits per second");
  return bits;
}

function parseQuantity(text: string): bigint | undefined {
  const match = QUANTITY.exec(text);
  if (match === null) return undefined;
  const [, whole = "", fraction = "", decimal, binary, exponent] = match;
  const digits = whole + fraction;
  if (digits === "") return undefined;

  const tens = (decimal === undefined ? Number(exponent ?? 0) : (DECIMAL_EXPONENT[decimal] ?? 0)) - fraction.length;
  const scaled = BigInt(digits) << (binary === undefined ? 0n : (BINARY_EXPONENT[binary] ?? 0n));
  return tens >= 0 ? scaled * 10n ** BigInt(tens) : divideRoundingUp(scaled, 10n ** BigInt(-tens));
}

function divideRoundingUp(value: bigint, by: bigint): bigint {
  return (value + by - 1n) / by;
}

function invalid(annotation: string, text: string, state: string): PluginError {
  return new PluginError("config-invalid", `Cannot use annotation "${annotation}": ${quoted(text)}: ${state}`);
}

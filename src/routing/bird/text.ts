/**
 * How values are written in the configuration of BIRD. What BIRD cannot read as one value is refused, so that nothing
 * from outside becomes part of the configuration's own text.
 */
import { PluginError } from "../../errors.ts";
import { addressBits, type Family } from "../../ip/address.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";

/** BIRD has no escapes in texts: a quotation mark or a line break ends one. */
const UNQUOTABLE = /["\n\r\0]/;
/** One capital letter at least: the keywords of BIRD that have one consist of nothing else. */
const NAME = /^(?=.*[A-Z])(?=.*[a-z])[A-Za-z_][A-Za-z0-9_]{0,63}$/;

export function isQuotable(text: string): boolean {
  return !UNQUOTABLE.test(text);
}

export function isProtocolName(name: string): boolean {
  return NAME.test(name);
}

/** The error does not show the text: it may be a secret. */
export function quotedText(text: string): string {
  if (isQuotable(text)) return `"${text}"`;
  throw new PluginError("config-invalid", "Cannot configure BIRD: a text has a quotation mark or a line break");
}

/** A text for people only: what cannot be quoted is replaced. */
export function description(text: string): string {
  return quotedText(text.replaceAll('"', "'").replace(/\p{Cc}/gu, " "));
}

/** Matches the networks of this family, and everything within them; `undefined` if there are none. */
export function isWithin(prefixes: readonly Prefix[], family: Family): string | undefined {
  const networks = prefixes.filter(({ network }) => network.family === family);
  if (networks.length === 0) return undefined;
  return `net ~ [ ${networks.map((prefix) => `${formatPrefix(prefix)}+`).join(", ")} ]`;
}

/** The same for routes to single addresses. */
export function isSingleWithin(prefixes: readonly Prefix[], family: Family): string | undefined {
  const bits = addressBits(family);
  return isWithin(prefixes, family)?.replaceAll("+", `{${bits}, ${bits}}`);
}

/** `undefined` stands for a line that is left out. */
export function block(head: string, body: readonly (string | undefined)[]): string {
  const lines = body.filter((line) => line !== undefined).flatMap((line) => line.split("\n"));
  return [`${head} {`, ...lines.map((line) => `  ${line}`), "}"].join("\n");
}

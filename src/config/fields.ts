/**
 * The kinds of value a config field may hold, each with its meaning (for the
 * docs) and what it allows (for the docs and for the message about a bad value).
 */
import * as v from "valibot";
import { cidrProblem } from "./pool-reference.ts";
import { isHttpUrl } from "./urls.ts";

export function text(meaning: string, allowed = "text") {
  return v.pipe(v.string(), v.description(meaning), v.metadata({ allowed }));
}

export function matchingText(meaning: string, allowed: string, matches: (text: string) => boolean) {
  return v.pipe(v.string(), v.check(matches), v.description(meaning), v.metadata({ allowed }));
}

export function filePath(meaning: string) {
  return text(meaning, "a file path");
}

export function flag(meaning: string) {
  return v.pipe(v.boolean(), v.description(meaning), v.metadata({ allowed: "true or false, without quotes" }));
}

/** The fields that must be a string although they say yes or no. */
export function flagInQuotes(meaning: string) {
  const allowed = '"true" or "false", as a string in quotes';
  return v.pipe(v.picklist(["true", "false"]), v.description(meaning), v.metadata({ allowed }));
}

export function wholeNumber(meaning: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  const upTo = maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `from ${minimum} to ${maximum}`;
  return v.pipe(
    v.number(),
    v.safeInteger(),
    v.minValue(minimum),
    v.maxValue(maximum),
    v.description(meaning),
    v.metadata({ allowed: `a whole number, ${upTo}` }),
  );
}

export function oneOf<const Values extends readonly string[]>(meaning: string, values: Values) {
  return v.pipe(v.picklist(values), v.description(meaning), v.metadata({ allowed: list(values) }));
}

/** As `oneOf`, whatever the case the value is written in. */
export function oneOfAnyCase<const Values extends readonly string[]>(meaning: string, values: Values) {
  const allowed = `${list(values)}, in any case`;
  return v.pipe(v.string(), v.toUpperCase(), v.picklist(values), v.description(meaning), v.metadata({ allowed }));
}

export function httpUrl(meaning: string) {
  return matchingText(meaning, "a URL that begins with http:// or https://", isHttpUrl);
}

export function httpUrls(meaning: string) {
  const allowed = "a list of URLs that begin with http:// or https://";
  const url = v.pipe(v.string(), v.check(isHttpUrl));
  return v.pipe(v.array(url), v.description(meaning), v.metadata({ allowed }));
}

export function poolList(meaning: string, family: 4 | 6) {
  const allowed = `a list of IPv${family} CIDRs or names of pools`;
  const pool = v.pipe(
    v.string(),
    v.check((text) => cidrProblem(text, family) === undefined),
  );
  return v.pipe(v.array(pool), v.description(meaning), v.metadata({ allowed }));
}

function list(values: readonly string[]): string {
  const quoted = values.map((value) => `"${value}"`);
  if (quoted.length === 1) return `only ${quoted[0]}`;
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

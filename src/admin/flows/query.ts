/** Which flows the options ask for: what a node or the API is asked. Pure. */
import { FLOW_QUERY_FIELDS, FlowQueryError, parametersOf, readFlowQuery } from "../../flows/flow-query.ts";
import { parseAddress } from "../../ip/address.ts";
import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import { DEFAULT_COUNT, DEFAULT_TIME } from "./options.ts";

export type Parameters = Readonly<Record<string, string>>;

/** Flows one by one: the last ones, unless a time or a number says otherwise. */
export function flowsAskedFor(given: Given, now: Date): Parameters {
  const last = countOf(given) ?? (given.values.has("since") ? undefined : DEFAULT_COUNT);
  return parametersIn(given, now, last === undefined ? {} : { last: String(last) });
}

/** Sums over a time; `--last` is about their rows. */
export function sumsAskedFor(given: Given, now: Date): Parameters {
  return parametersIn(given, now, { since: timeOf("since", given.values.get("since") ?? DEFAULT_TIME, now) });
}

/** `--last`. */
export function countOf({ values }: Given): number | undefined {
  const text = values.get("last");
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`"--last" is ${quoted(text)}: must be a number of at least 0`);
}

function parametersIn({ values }: Given, now: Date, more: Parameters): Parameters {
  const plain = [...values].filter(([name]) => FLOW_QUERY_FIELDS.includes(name) && !OWN_FORM.has(name));
  const times = TIMES.flatMap((name) => {
    const text = values.get(name);
    return text === undefined ? [] : [[name, timeOf(name, text, now)] as const];
  });
  const parameters = { ...Object.fromEntries([...plain, ...times]), ...endsIn(values), ...more };
  try {
    return Object.fromEntries(parametersOf(readFlowQuery(new URLSearchParams(parameters))));
  } catch (failure) {
    if (!(failure instanceof FlowQueryError)) throw failure;
    throw new UsageError(`"--${failure.field}": ${failure.problem}`);
  }
}

const TIMES = ["since", "until"] as const;
const ENDS = ["pod", "from", "to"] as const;
/** Options that are not sent as they are written. */
const OWN_FORM: ReadonlySet<string> = new Set([...TIMES, ...ENDS, "namespace", "last"]);

/** As in kubectl, the namespace is that of names that have none. */
function endsIn(values: Given["values"]): Parameters {
  const namespace = values.get("namespace");
  const ends = ENDS.flatMap((name) => {
    const word = values.get(name);
    if (word === undefined) return [];
    const isNoName = name !== "pod" && (word === "outside" || parseAddress(word) !== undefined);
    const isWhole = namespace === undefined || word.includes("/") || isNoName;
    return [[name, isWhole ? word : `${namespace}/${word}`] as const];
  });
  if (namespace === undefined || ends.length > 0) return Object.fromEntries(ends);
  return { namespace };
}

/** Milliseconds since 1970 of a time, or of the beginning of a duration that ends now. */
function timeOf(option: string, text: string, now: Date): string {
  const [, days] = /^(\d{1,4})d$/.exec(text) ?? [];
  if (days !== undefined) return String(now.getTime() - Number(days) * 86_400_000);
  if (isDuration(text)) return String(Math.round(now.getTime() - millisecondsOf(text)));
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time)) return String(time);
  throw new UsageError(
    `"--${option}" is ${quoted(text)}: must be a duration such as "5m" or "2h", or a time such as "2026-01-31T14:05:00Z"`,
  );
}

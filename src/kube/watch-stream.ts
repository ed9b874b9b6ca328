/** Splits the body of a watch into events. Their objects stay text: numbers in them may exceed 2^53. */

import { type LineRules, linesOf } from "../lines.ts";
import type { WatchEvent } from "./api.ts";
import { KubeFailure } from "./failure.ts";

/** The API server ends each line: one without an end was cut off. */
export const CUT_OFF: LineRules = { unended: "left out" };
const TYPES: ReadonlySet<string> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);

export async function* eventsOf(body: AsyncIterable<Uint8Array>): AsyncIterable<WatchEvent> {
  for await (const line of linesOf(body, CUT_OFF)) yield eventOf(line);
}

/** The API writes `{"type":"ADDED","object":{…}}`. */
function eventOf(line: string): WatchEvent {
  const [beginning = "", type = ""] = /^\{"type":"([A-Z]+)","object":(?=\{)/.exec(line) ?? [];
  if (!isType(type) || !line.endsWith("}")) throw notAnEvent(line);
  return { type, text: line.slice(beginning.length, -1) };
}

function isType(type: string): type is WatchEvent["type"] {
  return TYPES.has(type);
}

function notAnEvent(line: string): KubeFailure {
  const advice = "check that the address is that of an API server";
  const diagnosis = { stage: "request", effect: "none", cure: "repair", advice } as const;
  return new KubeFailure(diagnosis, `a line of ${line.length} characters is not a watch event`);
}

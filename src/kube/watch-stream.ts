/** Splits the body of a watch into events. Their objects stay text: numbers in them may exceed 2^53. */
import type { WatchEvent } from "./api.ts";
import { KubeFailure } from "./failure.ts";

const TYPES: ReadonlySet<string> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);

export async function* eventsOf(body: AsyncIterable<Uint8Array>): AsyncIterable<WatchEvent> {
  for await (const line of linesOf(body)) yield eventOf(line);
}

export async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let pending: string[] = [];
  for await (const chunk of body) {
    const [first = "", ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    pending.push(first);
    for (const next of others) {
      const line = pending.join("");
      pending = [next];
      if (line !== "") yield line;
    }
  }
  // A line without its end was cut off.
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

/** BlockAffinity: a node's claim on a block, in two phases so that a crash between them is detected. */
import { PluginError } from "../errors.ts";
import type { Prefix } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { isObject } from "./shape.ts";
import { parseStored } from "./stored.ts";

const STATES = ["pending", "confirmed", "pendingDeletion"] as const;

export type AffinityState = (typeof STATES)[number];

export interface BlockAffinity {
  readonly node: string;
  readonly cidr: Prefix;
  readonly state: AffinityState;
  readonly deleted: boolean;
}

/** Node and block are in the key. Old data have no state, or no value at all: those claims are confirmed. */
export function readAffinity(text: string, key: string, owner: Pick<BlockAffinity, "node" | "cidr">): BlockAffinity {
  const value = text === "" ? {} : parseStored(text, "BlockAffinity", key);
  if (!isObject(value)) throw malformed(key, "it is not an object");

  const { state, deleted } = value;
  if (state === undefined || state === null || state === "")
    return { ...owner, state: "confirmed", deleted: isSet(deleted) };
  const known = STATES.find((name) => name === state);
  if (!known) throw malformed(key, `"state" is ${quoted(state)}, not one of ${STATES.join(", ")}`);
  return { ...owner, state: known, deleted: isSet(deleted) };
}

export function writeAffinity({ state, deleted }: Pick<BlockAffinity, "state" | "deleted">): string {
  return JSON.stringify({ state, deleted });
}

// In a custom resource the same field is a string.
function isSet(deleted: unknown): boolean {
  return deleted === true || deleted === "true";
}

function malformed(key: string, reason: string): PluginError {
  return new PluginError("record-malformed", `Cannot read BlockAffinity at "${key}": ${reason}`);
}

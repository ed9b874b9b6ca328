/** The lines that a sidecar sends to the node agent. Pure. */
import * as v from "valibot";
import { decodeMessage } from "./decode-message.ts";
import type { Applied, FromSidecar, Hello } from "./sidecar-state.ts";

const LONGEST_VERSION = 128;

/** A later sidecar may say more: the agent must still read what it needs to refuse it. */
const hello = v.object({
  type: v.literal("hello"),
  protocol: v.pipe(v.number(), v.integer(), v.minValue(1)),
  version: v.pipe(v.string(), v.maxLength(LONGEST_VERSION)),
}) satisfies v.GenericSchema<Hello>;

const applied = v.object({
  type: v.literal("applied"),
  revision: v.pipe(v.number(), v.integer(), v.minValue(1)),
}) satisfies v.GenericSchema<Applied>;

const SCHEMAS = { hello, applied };

/** Throws `MalformedMessage`. */
export function decodeFromSidecar(line: string): FromSidecar {
  return decodeMessage(line, SCHEMAS);
}

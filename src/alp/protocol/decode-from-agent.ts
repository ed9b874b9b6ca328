/** The lines that a node agent sends to a sidecar. Pure. */
import * as v from "valibot";
import { decodeMessage } from "./decode-message.ts";
import type { FromAgent, Refused, Welcome } from "./sidecar-state.ts";
import { updateSchema } from "./update-schema.ts";

/** Later releases may say more when they begin a conversation: an older sidecar must still read what it knows. */
const welcome = v.object({
  type: v.literal("welcome"),
  protocol: v.number(),
  version: v.string(),
}) satisfies v.GenericSchema<Welcome>;

const refused = v.object({ type: v.literal("refused"), message: v.string() }) satisfies v.GenericSchema<Refused>;

const SCHEMAS = { welcome, refused, update: updateSchema };

/** Throws `MalformedMessage`. */
export function decodeFromAgent(line: string): FromAgent {
  return decodeMessage(line, SCHEMAS);
}

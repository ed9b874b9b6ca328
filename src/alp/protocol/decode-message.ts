/** A line of the conversation between node agent and sidecar -> a message of a known type. Pure. */
import * as v from "valibot";
import { formatProblem } from "../../model/problem.ts";
import { decodeShape, isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { MalformedMessage } from "./malformed-message.ts";
import type { Applied, FromAgent, FromSidecar, Hello, Refused, Welcome } from "./sidecar-state.ts";
import { updateSchema } from "./update-schema.ts";

/** Later releases may say more when they begin a conversation: an older sidecar must still read what it knows. */
const welcome = v.object({
  type: v.literal("welcome"),
  protocol: v.number(),
  version: v.string(),
}) satisfies v.GenericSchema<Welcome>;

const refused = v.object({ type: v.literal("refused"), message: v.string() }) satisfies v.GenericSchema<Refused>;

const FROM_AGENT = { welcome, refused, update: updateSchema };

/** Throws `MalformedMessage`. */
export function decodeFromAgent(line: string): FromAgent {
  return decodeMessage(line, FROM_AGENT);
}

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

const FROM_SIDECAR = { hello, applied };

/** Throws `MalformedMessage`. */
export function decodeFromSidecar(line: string): FromSidecar {
  return decodeMessage(line, FROM_SIDECAR);
}

/** The `type` of each message, with its schema. */
type Schemas = Readonly<Record<string, v.GenericSchema>>;

function decodeMessage<Table extends Schemas>(line: string, schemas: Table): v.InferOutput<Table[keyof Table]> {
  const value = parse(line);
  const type = isObject(value) ? value["type"] : undefined;
  const schema = typeof type === "string" && Object.hasOwn(schemas, type) ? schemas[type] : undefined;
  if (schema === undefined) {
    const expected = Object.keys(schemas).join(", ");
    throw new MalformedMessage("type", `${quoted(type)} is not a message that is expected here; use ${expected}`);
  }
  const decoded = decodeShape(schema, value);
  if (decoded.ok) return decoded.value;
  const [problem] = decoded.problems;
  if (problem === undefined) throw new MalformedMessage("", "it has an unknown problem");
  throw new MalformedMessage(problem.path, formatProblem({ ...problem, path: "" }));
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new MalformedMessage("", `${quoted(line)} is not JSON`);
  }
}

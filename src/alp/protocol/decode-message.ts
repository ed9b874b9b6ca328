/** A line of the conversation between node agent and sidecar -> a message of a known type. Pure. */
import type * as v from "valibot";
import { formatProblem } from "../../model/problem.ts";
import { decodeShape, isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { MalformedMessage } from "./malformed-message.ts";

/** The `type` of each message, with its schema. */
type Schemas = Readonly<Record<string, v.GenericSchema>>;

export function decodeMessage<Table extends Schemas>(line: string, schemas: Table): v.InferOutput<Table[keyof Table]> {
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

import * as v from "valibot";
import { parseJson } from "../../parse-json.ts";
import { Refusal } from "./refusal.ts";

/** What was posted. Throws a `Refusal` that says nothing of it: it may be a token. */
export function decodeBody<Output>(schema: v.GenericSchema<unknown, Output>, body: string, remedy: string): Output {
  const read = v.safeParse(schema, parsed(body));
  if (read.success) return read.output;
  throw new Refusal(400, "The body is not what is asked for here", remedy);
}

function parsed(body: string): unknown {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
}

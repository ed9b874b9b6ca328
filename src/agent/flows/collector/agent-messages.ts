/** The lines that the agent writes to its collector, as messages. */
import * as v from "valibot";
import { endNameSchema, type ToCollector } from "../../../flows/collector-messages.ts";
import { linesOf } from "../../../lines.ts";
import { parseJson } from "../../../parse-json.ts";

const number = v.number();
const linkSchema = v.object({
  addresses: v.array(v.string()),
  serverName: v.string(),
  authority: v.string(),
  token: v.string(),
});

const toCollectorSchema = v.variant("kind", [
  v.object({
    kind: v.literal("settings"),
    settings: v.object({
      node: v.string(),
      vxlanPort: number,
      historyMegabytes: number,
      historyMilliseconds: number,
      mostPerSecond: number,
      logFile: v.exactOptional(v.string()),
    }),
  }),
  v.object({ kind: v.literal("rules"), rules: v.array(v.tuple([number, v.string()])) }),
  v.object({ kind: v.literal("rules with requests"), numbers: v.array(number) }),
  v.object({ kind: v.literal("rules gone"), numbers: v.array(number) }),
  v.object({ kind: v.literal("labels written"), since: number }),
  v.object({ kind: v.literal("names"), names: v.array(v.tuple([v.string(), endNameSchema])) }),
  v.object({
    kind: v.literal("resources"),
    resources: v.array(v.object({ kind: v.string(), key: v.string(), value: v.exactOptional(v.string()) })),
  }),
  v.object({ kind: v.literal("denied"), counts: v.array(v.tuple([v.string(), number])) }),
  v.object({ kind: v.literal("link"), access: v.exactOptional(linkSchema) }),
]);

/** A message of the agent that cannot be read is a mistake in this program: it throws, without the text, which may have a token. */
export async function* readAgentMessages(input: AsyncIterable<Uint8Array>): AsyncGenerator<ToCollector> {
  for await (const line of linesOf(input, { unended: "left out" })) yield messageOf(line);
}

function messageOf(line: string): ToCollector {
  const read = v.safeParse(toCollectorSchema, jsonOf(line));
  if (read.success) return read.output;
  const [issue] = read.issues;
  throw new Error(`Cannot read a message of the agent: ${v.getDotPath(issue) ?? "it"} is not what is expected`);
}

function jsonOf(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    return undefined;
  }
}

/** What an answer about flows does not contain, in words. Pure. */
import { counted } from "../../counted.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import type { FlowLosses } from "../../flows/flow-record.ts";
import { durationWords } from "./flow-words.ts";

export type NodeLosses = Extract<FlowAnswer, { readonly losses: unknown }>["losses"];

const WORDS: readonly (readonly [keyof FlowLosses, (count: number) => string])[] = [
  [
    "kernelOverruns",
    (count) => `the kernel dropped events (${counted(count, "time")}): short connections may be missing`,
  ],
  ["rulesUnknown", (count) => `the beginning of ${counted(count, "connection")} was not seen: their rule is unknown`],
  [
    "overLimit",
    (count) =>
      `there were more new connections than flowsPerSecond: ${counted(count, "connection")} only in the sums (flows top and graph, without --pod, --label and addresses)`,
  ],
  ["overCapacity", (count) => `too many connections at a time: ${counted(count, "connection")} not followed any more`],
  [
    "deniedSuppressed",
    (count) => `there were more denied packets than flowDeniedPerSecond: ${counted(count, "packet")} without a flow`,
  ],
  [
    "namesUnknown",
    (count) =>
      `the agent did not say in time who the ends of ${counted(count, "flow")} are: "outside" may be wrong there`,
  ],
  [
    "stagedNotJudged",
    (count) => `staged policies may matter to ${counted(count, "flow")} for which nothing says what they would decide`,
  ],
  ["notStored", (count) => `${counted(count, "flow")} could not be written to the history`],
  ["notLogged", (count) => `${counted(count, "flow")} could not be written to flowLogFile`],
];

/** Of the whole history of the node, so the numbers are about more than this answer. By what they count. */
export function lossWords(losses: NodeLosses): ReadonlyMap<keyof FlowLosses, string> {
  const counted = WORDS.flatMap(([name, words]) => {
    const count = losses[name] ?? 0;
    return count > 0 ? [[name, words(count)] as const] : [];
  });
  const { withoutCollector } = losses;
  if (withoutCollector === 0) return new Map(counted);
  const gap = `nothing was recorded for ${durationWords(withoutCollector)}: the agent did not run`;
  return new Map([...counted, ["withoutCollector", gap]]);
}

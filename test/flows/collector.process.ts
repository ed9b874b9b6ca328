/**
 * A collector for tests: everything but the history. What would be stored is written to stdout, beside the messages to the agent.
 * Argument: limits, as JSON.
 */
import { readAgentMessages } from "../../src/agent/flows/collector/agent-messages.ts";
import { collectFlows } from "../../src/agent/flows/collector/collect.ts";
import type { CollectorLosses } from "../../src/agent/flows/flow-sink.ts";
import type { FlowRecord } from "../../src/flows/flow-record.ts";

const { limits = {}, open = [] }: { limits?: object; open?: readonly FlowRecord[] } = JSON.parse(
  process.argv[2] ?? "{}",
);
const write = (value: unknown) => void process.stdout.write(`${JSON.stringify(value)}\n`);
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
let losses: CollectorLosses = {
  kernelOverruns: 0,
  rulesUnknown: 0,
  overLimit: 0,
  overCapacity: 0,
  deniedSuppressed: 0,
  namesUnknown: 0,
};

await collectFlows(
  {
    environment: process.env,
    say: (message) => console.error(message),
    messages: readAgentMessages(Bun.stdin.stream()),
    send: write,
    limits,
    openSink: () => ({
      put: (records, overLimit) => write({ kind: "put", records: records.map(({ record }) => record), overLimit }),
      putResources: () => {},
      noteLosses: (latest) => {
        losses = latest;
      },
      openRecords: () => ({ records: open, leftOut: 0 }),
      configure: () => {},
      facts: () => ({ losses: { ...losses, notStored: 0, notLogged: 0, withoutCollector: 0 }, metrics: "" }),
      close: () => write({ kind: "closed" }),
    }),
  },
  stop.signal,
);
process.exit(0);

/**
 * The process of the collector: its parts, connected.
 *
 *   agent ═ stdin, stdout ═ collect.ts ──▶ history ──▶ the socket of this node, links to the controllers
 */
import { readFileSync } from "node:fs";
import { FLOW_HISTORY_DIRECTORY } from "../../../config/config-files.ts";
import { flowSocketPath } from "../../../config/run-directory.ts";
import type { CollectorSettings, FromCollector } from "../../../flows/collector-messages.ts";
import { explainFlow } from "../../../flows/explain-flow.ts";
import type { FlowExplanation } from "../../../flows/flow-answer.ts";
import type { LinkAccess } from "../../../flows/link-messages.ts";
import { readStoredResources } from "../../../flows/stored-resources.ts";
import { nodeAgentSettings } from "../../../model/node-agent-configuration.ts";
import type { AgentProcess } from "../../agent-process.ts";
import { type ExplainedFlow, FlowHistory, type HistorySettings } from "../history/flow-history.ts";
import { FlowServer } from "../history/serve-flows.ts";
import { ControllerLinks } from "../link/node-link.ts";
import { readAgentMessages } from "./agent-messages.ts";
import { type CollectorSink, collectFlows } from "./collect.ts";

export interface FlowCollectorMeans extends Pick<AgentProcess, "environment" | "say"> {
  /** Of the agent. */
  readonly input: AsyncIterable<Uint8Array>;
  /** To the agent. */
  readonly write: (text: string) => void;
}

/** Until the agent ends, or the signal is aborted. */
export async function runFlowCollector(
  { environment, say, input, write }: FlowCollectorMeans,
  signal: AbortSignal,
): Promise<void> {
  const warn = (message: string) => say(message, {}, "WARNING");
  let access: LinkAccess | undefined;
  let links: ControllerLinks | undefined;
  const openSink = (settings: CollectorSettings): CollectorSink => {
    const history = new FlowHistory({
      ...{ directory: FLOW_HISTORY_DIRECTORY, node: settings.node, settings: historySettings(settings) },
      ...{ now: Date.now, elapsed: clockSinceStart(), warn, explain: explained },
    });
    const server = new FlowServer({ path: flowSocketPath(environment), node: settings.node, source: history });
    links = new ControllerLinks({
      ...{ source: history, random: Math.random },
      log: (message, level) => say(message, {}, level),
    });
    links.use(access);
    return new HistorySink(history, async () => {
      links?.close();
      await server.close();
    });
  };
  await collectFlows(
    {
      ...{ environment, say, openSink, messages: readAgentMessages(input) },
      send: (message: FromCollector) => write(`${JSON.stringify(message)}\n`),
      setLink: (given) => {
        access = given;
        links?.use(access);
      },
    },
    signal,
  );
}

/** Milliseconds since the machine started, also for the next collector. */
function clockSinceStart(): () => number {
  const [seconds = ""] = readFileSync("/proc/uptime", "utf8").split(" ");
  const before = Number(seconds) * 1_000 - performance.now();
  return () => before + performance.now();
}

/** What the collector hands on goes to the history, which is asked over the socket and the links. */
class HistorySink implements CollectorSink {
  readonly put: CollectorSink["put"];
  readonly putResources: CollectorSink["putResources"];
  readonly noteLosses: CollectorSink["noteLosses"];
  readonly openRecords: CollectorSink["openRecords"];
  readonly summedUntil: () => number | undefined;

  constructor(
    private readonly history: FlowHistory,
    private readonly endQuestions: () => Promise<void>,
  ) {
    this.put = history.put.bind(history);
    this.putResources = history.putResources.bind(history);
    this.noteLosses = history.noteLosses.bind(history);
    this.openRecords = history.openRecords.bind(history);
    this.summedUntil = history.summedUntil.bind(history);
  }

  configure(settings: CollectorSettings): void {
    this.history.set(historySettings(settings));
  }

  facts(open: number): ReturnType<CollectorSink["facts"]> {
    return { losses: this.history.losses, metrics: this.history.metrics({ open }) };
  }

  async close(): Promise<void> {
    await this.endQuestions();
    await this.history.close();
  }
}

const MEGABYTE = 1024 * 1024;

function historySettings({ historyMegabytes, historyMilliseconds, logFile }: CollectorSettings): HistorySettings {
  return {
    limits: { bytes: historyMegabytes * MEGABYTE, milliseconds: historyMilliseconds },
    ...(logFile === undefined ? {} : { logFile }),
  };
}

function explained({ record, resources, endpoints }: ExplainedFlow): FlowExplanation {
  const read = resources === undefined ? undefined : readStoredResources(resources, endpoints);
  const settingsOf = (node: string) => nodeAgentSettings(read?.configurations ?? [], node);
  return explainFlow(record, read?.resources, { settingsOf });
}

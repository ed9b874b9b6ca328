import type { KnownRule } from "../../linux/nftables/read.ts";
import type { Tracer } from "../../linux/nftables/trace.ts";
import { readPolicy } from "../../policy/read-resources.ts";
import { quoted } from "../../quote.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type Given, UsageError, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { paint } from "../paint.ts";
import { findPeer, type Peer } from "./explain-peer.ts";
import { addressPeer, FLOW_OPTIONS, type Flow, flowConditions, flowsOf, flowWords } from "./trace-flow.ts";
import { type DecisionWords, decisionWords } from "./trace-words.ts";
import { type Decision, type TracedPacket, TracedPackets } from "./traced-packets.ts";

const DEFAULT_SECONDS = 30;
const DEFAULT_COUNT = 10;
const ROUND_MILLISECONDS = 50;

export const policyTrace: Command = {
  kind: "command",
  name: "trace",
  summary: "Watch packets of a flow on this node, and show which rule drops or allows each of them",
  description: [
    "Runs on the node of the sender or of the receiver, as root, while the packets are sent. Shows the decision of the kernel itself: a rule",
    "of a policy, the spoofing guard, or a chain of another program (firewalld, ufw, Docker …), which is named with table, chain and rule.",
    "Packets that are sent by a workload of another node and dropped there do not arrive here: run it there. Replies are the flow from",
    "the destination to the source. At most 50 packets a second are watched.",
    "Ends after --count packets or --timeout seconds; the exit code is 1 if no packet was seen. Leaves nothing in the kernel, even if it is killed.",
  ].join("\n"),
  options: [
    ...FLOW_OPTIONS,
    { name: "timeout", value: "SECONDS", summary: `How long to wait for packets (default ${DEFAULT_SECONDS})` },
    { name: "count", value: "NUMBER", summary: `How many packets to show (default ${DEFAULT_COUNT})` },
  ],
  needsDatastore: true,
  examples: [
    {
      command: "policy trace --from default/client --to default/web --port 80",
      does: "Which rule drops the packets between two pods?",
    },
    {
      command: "policy trace --to 10.0.0.5 --protocol icmp --timeout 60",
      does: "Who lets pings to this address pass?",
    },
    { command: "policy trace --from default/client -o json", does: "All packets of a pod, one JSON object per line" },
  ],
  async run(context, given) {
    const seconds = readPositive(given, "timeout", DEFAULT_SECONDS);
    const count = readPositive(given, "count", DEFAULT_COUNT);
    const flows = flowsOf(given, await endsOf(context, given));
    const tracer = await context.openTracer(flows.map(flowConditions));
    try {
      context.stderr(`Waiting ${seconds} s for packets: ${flows.map(flowWords).join("; ")}\n`);
      const shown = await follow(tracer, { context, given, seconds, count });
      if (shown > 0) return EXIT_OK;
      context.stderr(nothingSeen(seconds, flows));
      return EXIT_FAILED;
    } finally {
      tracer.close();
    }
  },
};

async function endsOf(context: Context, given: Given): Promise<{ readonly from?: Peer; readonly to?: Peer }> {
  const [from, to] = [given.values.get("from"), given.values.get("to")];
  if (from === undefined && to === undefined)
    throw new UsageError(
      `"--from" or "--to" is missing: give NAMESPACE/POD, a container, hostendpoint/NAME or an address`,
    );
  const words = [from, to].filter((word) => word !== undefined);
  const peers = new Map(words.map((word) => [word, addressPeer(word)]));
  if ([...peers.values()].includes(undefined)) {
    await withDatastore(context, given, async (store) => {
      const { resources, nodes } = await readPolicy(store);
      const known = { endpoints: resources.endpoints, hostEndpoints: resources.hostEndpoints, nodes };
      for (const word of words) peers.set(word, findPeer(word, known));
    });
  }
  const peer = (word: string | undefined) => (word === undefined ? undefined : peers.get(word));
  const [source, destination] = [peer(from), peer(to)];
  return {
    ...(source === undefined ? {} : { from: source }),
    ...(destination === undefined ? {} : { to: destination }),
  };
}

interface FollowMeans {
  readonly context: Context;
  readonly given: Given;
  readonly seconds: number;
  readonly count: number;
}

/** Returns how many packets were shown. */
async function follow(tracer: Tracer, { context, given, seconds, count }: FollowMeans): Promise<number> {
  const packets = new TracedPackets(tracer.table);
  const words = new DecisionReader(tracer);
  let shown = 0;
  const show = (decided: readonly TracedPacket[]) => {
    for (const packet of decided) {
      if (shown === count) return;
      shown += 1;
      context.stdout(wantsJson(given) ? jsonOf(packet, words) : textOf(packet, words, context));
    }
  };
  for (let waited = 0; waited < seconds * 1_000 && shown < count; waited += ROUND_MILLISECONDS) {
    await context.wait(ROUND_MILLISECONDS);
    if (context.signal.aborted || context.outputClosed.aborted) break;
    const { events, hasLost } = tracer.read();
    if (hasLost) context.stderr("Warning: there are more packets than can be read; some are not shown\n");
    show(packets.round(events));
  }
  show(packets.rest());
  return shown;
}

/** Rules are read once: a chain that was written again meanwhile has rules with other handles. */
class DecisionReader {
  private readonly chains = new Map<string, readonly KnownRule[]>();

  constructor(private readonly tracer: Tracer) {}

  read(decision: Decision): DecisionWords {
    const key = `${decision.table.family} ${decision.table.name} ${decision.chain}`;
    const { handle } = decision;
    let rules = this.chains.get(key) ?? [];
    if (handle !== undefined && !rules.some((rule) => rule.handle === handle)) {
      rules = this.tracer.rulesOf(decision.table, decision.chain);
      this.chains.set(key, rules);
    }
    return decisionWords(decision, rules);
  }
}

/** For a packet that passed: what policies said. */
function decisionsToShow({ outcome, decisions }: TracedPacket, words: DecisionReader): readonly DecisionWords[] {
  const last = decisions.at(-1);
  if (outcome === "dropped") return last === undefined ? [] : [words.read(last)];
  return decisions.map((decision) => words.read(decision)).filter(({ owner }) => owner === "policy");
}

function textOf(packet: TracedPacket, words: DecisionReader, context: Context): string {
  const { green, red } = paint(context);
  const time = context.now().toISOString().slice(11, 23);
  const color = packet.outcome === "dropped" ? red : green;
  const shown = decisionsToShow(packet, words);
  const lines = shown.flatMap(({ by, see }) => [`by ${by}`, ...(see === undefined ? [] : [`see: ${see}`])]);
  const none = packet.outcome === "passed" && lines.length === 0 ? ["no policy of this node applies to it"] : [];
  return `${time} ${packet.title}: ${color(packet.outcome === "dropped" ? "dropped" : "passed")}\n${[...lines, ...none].map((line) => `  ${line}\n`).join("")}`;
}

function jsonOf(packet: TracedPacket, words: DecisionReader): string {
  const { title, outcome } = packet;
  const last = packet.decisions.at(-1);
  const at =
    outcome === "dropped" && last !== undefined
      ? { table: `${last.table.family} ${last.table.name}`, chain: last.chain }
      : {};
  return `${JSON.stringify({ packet: title, outcome, ...at, decisions: decisionsToShow(packet, words) })}\n`;
}

function nothingSeen(seconds: number, flows: readonly Flow[]): string {
  return `No packet was seen within ${seconds} s (${flows.map(flowWords).join("; ")}): is it sent, and does it pass this node?\n`;
}

function readPositive({ values }: Given, name: string, otherwise: number): number {
  const text = values.get(name);
  if (text === undefined) return otherwise;
  const number = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (number > 0) return number;
  throw new UsageError(`"--${name}" is ${quoted(text)}: must be a number greater than 0`);
}

import type { GroupListener } from "../../../linux/log-group.ts";
import type { KnownRule } from "../../../linux/nftables/read.ts";
import type { Tracer } from "../../../linux/nftables/trace.ts";
import { type PacketHead, readWholeHead } from "../../../linux/packet-head.ts";
import { quoted } from "../../../quote.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Call, Clock, DatastoreAccess, PolicyTable, Terminal } from "../../main/context.ts";
import { isInterruption } from "../../main/interruption.ts";
import { paint } from "../../terminal/paint.ts";
import { noPolicyTable } from "../counters.ts";
import { findPeer, type KnownPeers, type Peer } from "../explain/peer.ts";
import { DEFAULT_COUNT, DEFAULT_SECONDS } from "../options.ts";
import { type PeerNames, withPeerNames } from "../peer-names.ts";
import { addressPeer, type Flow, flowConditions, flowsOf, flowWords } from "./flow.ts";
import { headFields, headWords, isOfFlow, type NameOf } from "./packet-head.ts";
import { type Decision, type TracedPacket, TracedPackets } from "./traced-packets.ts";
import { type DecisionWords, decisionWords, droppedBy, isOfKnownConnection } from "./words.ts";

const ROUND_MILLISECONDS = 50;
/** Nobody reads more. */
const MOST_SHOWN_PER_SECOND = 100;
/** Beyond this many dropped packets, wanted or not, the kernel is not asked for more until the second is over. */
const MOST_READ_PER_SECOND = 5_000;

export async function run(context: DatastoreAccess & PolicyTable & Clock, given: Given): Promise<ExitCode> {
  const words = [given.values.get("from"), given.values.get("to")].filter((word) => word !== undefined);
  const isOfAll = words.length === 0;
  if (isOfAll && !given.switches.has("dropped"))
    throw new UsageError(
      `"--from", "--to" or "--dropped" is missing: give NAMESPACE/POD, a container, a node, hostendpoint/NAME or an address; --dropped alone shows everything that policy drops`,
    );
  const limits = {
    seconds: readPositive(given, "timeout") ?? (isOfAll ? Number.POSITIVE_INFINITY : DEFAULT_SECONDS),
    count: readPositive(given, "count") ?? (isOfAll ? Number.POSITIVE_INFINITY : DEFAULT_COUNT),
  };
  const isNeeded = words.some((word) => addressPeer(word) === undefined);
  if (!isNeeded) flowsOf(given, endsOf(given, undefined));
  return withPeerNames({ context, given, isNeeded }, (names) => {
    const flows = flowsOf(given, endsOf(given, names.known));
    const tracing = { context, given, names, flows, ...limits };
    return isOfAll ? traceDrops(tracing) : traceFlows(tracing);
  });
}

/** `known`: absent if both ends are addresses. */
function endsOf({ values }: Given, known: KnownPeers | undefined): { readonly from?: Peer; readonly to?: Peer } {
  const peer = (word: string) => addressPeer(word) ?? (known && findPeer(word, known));
  const [from, to] = [values.get("from"), values.get("to")].map((word) =>
    word === undefined ? undefined : peer(word),
  );
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
}

interface Tracing {
  readonly context: Call & Terminal & PolicyTable & Clock;
  readonly given: Given;
  readonly names: PeerNames;
  readonly flows: readonly Flow[];
  readonly seconds: number;
  readonly count: number;
}

/** What is printed of a packet. */
interface ShownPacket {
  readonly head: PacketHead | undefined;
  readonly outcome: TracedPacket["outcome"];
  readonly decisions: readonly DecisionWords[];
  /** Where it was dropped; absent if the kernel names only the rule. */
  readonly at?: Pick<Decision, "table" | "chain"> | undefined;
}

/** Everything that policy drops. */
async function traceDrops(tracing: Tracing): Promise<ExitCode> {
  const { context, flows, seconds } = tracing;
  const log = await context.openDropLog();
  if (log === undefined) {
    context.stderr(noPolicyTable());
    return EXIT_FAILED;
  }
  const printer = new Printer(tracing);
  const reader = new DropReader(log, (head) => flows.some((flow) => isOfFlow(head, flow)));
  try {
    const limit = Number.isFinite(seconds) ? `for ${seconds} s` : "until Ctrl-C";
    context.stderr(`Watching ${limit} what policy drops on this host${filterWords(tracing)}\n`);
    const isStopped = await forRounds(tracing, printer, async () => {
      const dropped = reader.round();
      if (reader.hasLeftOut) printer.warnOfLoss();
      for (const { head, prefix } of dropped)
        await printer.print({ head, outcome: "dropped", decisions: [droppedBy(prefix)] });
    });
    if (printer.printed > 0 || isStopped) return EXIT_OK;
    context.stderr(
      reader.hasLeftOut
        ? `None was found within ${seconds} s, but not all dropped packets were looked at${filterWords(tracing)}\n`
        : `Policy dropped no packet within ${seconds} s${filterWords(tracing)}\n`,
    );
    return EXIT_FAILED;
  } finally {
    log.close();
  }
}

interface DroppedPacket {
  readonly head: PacketHead;
  readonly prefix: string;
}

/** The wanted ones of the dropped packets, as many as a person and this host can bear. */
class DropReader {
  /** Perhaps wanted ones. */
  hasLeftOut = false;
  private rounds = 0;
  private readInSecond = 0;
  private shownInSecond = 0;
  private isPaused = false;

  constructor(
    private readonly log: GroupListener,
    private readonly isWanted: (head: PacketHead) => boolean,
  ) {}

  round(): readonly DroppedPacket[] {
    this.rounds += 1;
    if (this.rounds % (1_000 / ROUND_MILLISECONDS) === 0) this.beginSecond();
    if (this.isPaused) return [];
    const { packets, hasLost } = this.log.read();
    const wanted = packets.flatMap(({ prefix, bytes }): DroppedPacket[] => {
      const head = readWholeHead(bytes);
      return head === undefined || !this.isWanted(head) ? [] : [{ head, prefix }];
    });
    const shown = wanted.slice(0, MOST_SHOWN_PER_SECOND - this.shownInSecond);
    this.readInSecond += packets.length;
    this.shownInSecond += shown.length;
    if (hasLost || shown.length < wanted.length || this.readInSecond > MOST_READ_PER_SECOND) this.pause();
    return shown;
  }

  private beginSecond(): void {
    [this.readInSecond, this.shownInSecond] = [0, 0];
    if (this.isPaused) this.log.resume();
    this.isPaused = false;
  }

  private pause(): void {
    this.hasLeftOut = true;
    this.log.pause();
    this.isPaused = true;
  }
}

/** Nothing if it is about all packets. */
function filterWords({ flows }: Tracing): string {
  const isAll =
    flows.length === 2 && flows.every(({ protocol, port, sourcePort }) => !(protocol ?? port ?? sourcePort));
  return isAll ? "" : `: ${flows.map(flowWords).join("; ")}`;
}

/** The packets of a flow, through all chains of the host. */
async function traceFlows(tracing: Tracing): Promise<ExitCode> {
  const { context, given, flows, seconds } = tracing;
  const tracer = await context.openTracer(flows.map(flowConditions));
  try {
    context.stderr(`Waiting ${seconds} s for packets: ${flows.map(flowWords).join("; ")}\n`);
    const packets = new TracedPackets(tracer.table);
    const reader = new DecisionReader(tracer);
    const printer = new Printer(tracing);
    const isWanted = ({ outcome }: TracedPacket) => outcome !== "passed" || !given.switches.has("dropped");
    const show = async (decided: readonly TracedPacket[]) => {
      for (const packet of decided.filter(isWanted)) await printer.print(reader.shown(packet));
    };
    const isStopped = await forRounds(tracing, printer, async () => {
      const { events, hasLost } = tracer.read();
      if (hasLost) printer.warnOfLoss();
      await show(packets.round(events));
    });
    await show(packets.rest());
    printer.noteLaterPackets();
    if (printer.printed > 0 || isStopped) return EXIT_OK;
    context.stderr(nothingSeen(tracing));
    return EXIT_FAILED;
  } finally {
    tracer.close();
  }
}

/** Returns whether the user stopped it, by a signal or by closing its output: the usual end of something that runs on. */
async function forRounds(
  { context, seconds, count }: Tracing,
  printer: Printer,
  round: () => Promise<void>,
): Promise<boolean> {
  try {
    for (let waited = 0; waited < seconds * 1_000 && printer.printed < count; waited += ROUND_MILLISECONDS) {
      await context.wait(ROUND_MILLISECONDS);
      if (context.signal.aborted || context.outputClosed.aborted) return true;
      await round();
    }
    return false;
  } catch (failure) {
    if (context.signal.aborted && isInterruption(failure, context.signal)) return true;
    throw failure;
  }
}

class Printer {
  printed = 0;
  /** Connections whose first packet passed. */
  private readonly passed = new Set<string>();
  private laterPackets = 0;
  private hasWarned = false;

  constructor(private readonly tracing: Tracing) {}

  async print(packet: ShownPacket): Promise<void> {
    const { context, given, names, count } = this.tracing;
    if (this.printed >= count || this.isLaterPacket(packet)) return;
    this.printed += 1;
    const { head } = packet;
    if (head !== undefined) await names.lookFor([head.source.address, head.destination.address]);
    const time = context.now().toISOString();
    context.stdout(wantsJson(given) ? jsonOf(packet, time, names.nameOf) : textOf(packet, { time, context, names }));
  }

  /** Once: it goes on while the load does. */
  warnOfLoss(): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    this.tracing.context.stderr("Warning: there are more packets than can be shown; some are left out\n");
  }

  noteLaterPackets(): void {
    const { context } = this.tracing;
    if (this.laterPackets > 0)
      context.stderr(`Not shown: ${this.laterPackets} later packets of the connections that passed\n`);
  }

  /** Of a connection that is shown already: nothing is decided about it again. */
  private isLaterPacket({ head, outcome, decisions }: ShownPacket): boolean {
    if (outcome !== "passed") return false;
    const connection = headWords(head);
    const isLater = this.passed.has(connection) && decisions.every(isOfKnownConnection);
    this.passed.add(connection);
    if (isLater) this.laterPackets += 1;
    return isLater;
  }
}

/** Rules are read once: a chain that was written again meanwhile has rules with other handles. */
class DecisionReader {
  private readonly chains = new Map<string, readonly KnownRule[]>();

  constructor(private readonly tracer: Tracer) {}

  /** For a packet that passed: what policies said. */
  shown({ head, outcome, decisions }: TracedPacket): ShownPacket {
    const last = decisions.at(-1);
    if (outcome !== "passed")
      return { head, outcome, at: last, decisions: last === undefined ? [] : [this.read(last)] };
    const words = decisions.map((decision) => this.read(decision)).filter(({ owner }) => owner === "policy");
    return { head, outcome, decisions: words };
  }

  private read(decision: Decision): DecisionWords {
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

interface TextMeans {
  readonly time: string;
  readonly context: Call & Terminal;
  readonly names: PeerNames;
}

function textOf({ head, outcome, decisions }: ShownPacket, { time, context, names }: TextMeans): string {
  const { green, red } = paint(context);
  const color = outcome === "passed" ? green : red;
  const lines = decisions.flatMap(({ by, see }) => [`by ${by}`, ...(see === undefined ? [] : [`see: ${see}`])]);
  const none = outcome === "passed" && lines.length === 0 ? ["no policy of this node applies to it"] : [];
  const more = [...lines, ...none].map((line) => `  ${line}\n`).join("");
  return `${time.slice(11, 23)} ${headWords(head, names.nameOf)}: ${color(outcome)}\n${more}`;
}

function jsonOf({ head, outcome, decisions, at }: ShownPacket, time: string, nameOf: NameOf): string {
  const place = at === undefined ? {} : { table: `${at.table.family} ${at.table.name}`, chain: at.chain };
  return `${JSON.stringify({ time, packet: headWords(head), ...headFields(head, nameOf), outcome, ...place, decisions })}\n`;
}

function nothingSeen({ given, seconds, flows }: Tracing): string {
  const what = given.switches.has("dropped") ? "No packet was dropped" : "No packet was seen";
  return `${what} within ${seconds} s (${flows.map(flowWords).join("; ")}): is it sent, and does it pass this node?\n`;
}

function readPositive({ values }: Given, name: string): number | undefined {
  const text = values.get(name);
  if (text === undefined) return undefined;
  const number = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (number > 0) return number;
  throw new UsageError(`"--${name}" is ${quoted(text)}: must be a number greater than 0`);
}

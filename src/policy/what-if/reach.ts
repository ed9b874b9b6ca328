/**
 * Who may reach whom in two states of the resources, before and after a change: exact, not sampled.
 *
 *   ends        every address of workloads and hosts, and one for each set of networks outside
 *   -> classes  ends that no selector, network, named port or Service of any rule of either state can tell apart
 *   -> pairs    of classes; the packets between them fall into cells that no rule tells apart
 *   -> verdicts of the judge, about one packet of each cell, once for all pairs that differ in nothing that the rules ask
 *
 * What the host endpoints on the way of a forwarded packet decide is not in it: that depends on interfaces, which only nodes know. Nor is a packet
 * that does not leave its node, from or to the host itself. Pure.
 */
import type { Family } from "../../ip/address.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { Direction } from "../effective-rule.ts";
import { IndexedJudge } from "../judge/indexed-judge.ts";
import type { PolicyResources } from "../judge/resources.ts";
import { type End, endsOf } from "./ends.ts";
import {
  BreaksBuilder,
  cellsOf,
  type PacketBreaks,
  type PacketCell,
  type PacketShape,
  type PacketVerdicts,
  PacketVerdictsIndex,
  shapeOf,
} from "./packet-cells.ts";
import { PeerFacts, type PeerTest, visibleTo } from "./peer-tests.ts";
import { type Program, type ProgramSource, Programs } from "./programs.ts";

export interface ReachState {
  readonly resources: PolicyResources;
  readonly settingsOf: (node: string) => NodeAgentSettings;
  /** Nodes without a policy table, where not even profiles are enforced. */
  readonly isUnenforcedAt?: (node: string) => boolean;
}

export interface ReachOptions {
  readonly before: ReachState;
  readonly after: ReachState;
}

/** Ends that nothing tells apart. */
export interface EndClass {
  readonly kind: End["kind"];
  readonly family: Family;
  readonly ends: readonly End[];
}

export interface PairReach {
  readonly source: EndClass;
  readonly destination: EndClass;
  readonly cells: readonly ReachCell[];
  /** What the cells tell apart. */
  readonly breaks: PacketBreaks;
  /** Whether any cell has another verdict after the change. */
  readonly differs: boolean;
}

/** Packets between two classes. */
export interface ReachCell extends PacketCell {
  readonly before: Verdict;
  readonly after: Verdict;
}

export type Verdict = "allowed" | "denied";

export class Reach {
  readonly classes: readonly EndClass[];
  private readonly states: readonly [State, State];
  private readonly details: ReadonlyMap<EndClass, ClassDetails>;
  private readonly known = new Map<string, Omit<PairReach, "source" | "destination">>();

  constructor({ before, after }: ReachOptions) {
    const all = [before.resources, after.resources];
    const programs = new Programs(declaredPorts(all), servicePorts(all));
    const decisions = new Decisions();
    this.states = [new State(before, programs, "before", decisions), new State(after, programs, "after", decisions)];
    const ends = endsOf(before.resources, after.resources);
    const tests = this.states.flatMap((state) => ends.flatMap((end) => state.programsOf(end).flatMap(testsIn)));
    const visible = visibleTo(new Set(tests));
    const seen = (end: End) => this.states.map(({ facts }) => facts.signature(end.address, end.text, visible));
    const ids = (end: End) => this.states.flatMap((state) => state.programsOf(end).map((program) => program?.id ?? -1));
    const groups = Map.groupBy(ends, (end) =>
      JSON.stringify([end.kind, end.address.family, ...seen(end), ...ids(end)]),
    );
    const details = Array.from(groups.values()).flatMap((members, index) => {
      const [first] = members;
      if (first === undefined) return [];
      const [[former, present], [egress, ingress, laterEgress, laterIngress]] = [seen(first), ids(first)];
      const differs = { egress: egress !== laterEgress, ingress: ingress !== laterIngress, seen: former !== present };
      const made: EndClass = { kind: first.kind, family: first.address.family, ends: members };
      return [[made, { index, ...differs }] as const];
    });
    this.classes = details.map(([each]) => each);
    this.details = new Map(details);
  }

  /** The pairs in which the verdict of any packet differs. */
  *changes(): Iterable<PairReach> {
    for (const [source, destination] of this.pairs()) {
      if (!this.mayDiffer(source, destination)) continue;
      const [former, present] = this.decisionsOf(source, destination);
      if (former?.egress === present?.egress && former?.ingress === present?.ingress) continue;
      const pair = this.between(source, destination);
      if (pair.differs) yield pair;
    }
  }

  /** Of classes that can send to each other. */
  *pairs(): Iterable<readonly [source: EndClass, destination: EndClass]> {
    for (const source of this.classes) {
      for (const destination of this.classes) {
        if (source.family === destination.family && hasPackets(source, destination)) yield [source, destination];
      }
    }
  }

  between(source: EndClass, destination: EndClass): PairReach {
    const verdicts = this.decisionsOf(source, destination).map(({ egress, ingress }) => [
      egress.verdicts,
      ingress.verdicts,
    ]);
    const key = verdicts.flatMap((both) => both.map(({ id }) => id)).join(" ");
    const known = this.known.get(key) ?? reachOf(verdicts);
    this.known.set(key, known);
    return { source, destination, ...known };
  }

  /** Whether what decides about their packets, or what rules can see of them, differs. */
  private mayDiffer(source: EndClass, destination: EndClass): boolean {
    const [from, to] = [this.details.get(source), this.details.get(destination)];
    return [from?.egress, to?.ingress, from?.seen, to?.seen].some((differs) => differs === true);
  }

  /** Before, then after. */
  private decisionsOf(source: EndClass, destination: EndClass): readonly PairDecisions[] {
    const [from, to] = [source.ends[0], destination.ends[0]];
    if (from === undefined || to === undefined) return [];
    const [own, other] = [this.details.get(source)?.index ?? -1, this.details.get(destination)?.index ?? -1];
    return this.states.map((state) => ({
      egress: state.decision(from, to, "egress", [own, other]),
      ingress: state.decision(to, from, "ingress", [other, own]),
    }));
  }
}

/** What differs between the two states. */
interface ClassDetails {
  readonly index: number;
  readonly egress: boolean;
  readonly ingress: boolean;
  readonly seen: boolean;
}

function testsIn(program: Program | undefined): readonly PeerTest[] {
  return program === undefined ? [] : [...program.ownTests, ...program.peerTests];
}

/** A packet to its own address leaves nobody, one between a host and its own workloads passes no host endpoint. */
function hasPackets(source: EndClass, destination: EndClass): boolean {
  if (source.kind === "outside" && destination.kind === "outside") return false;
  const isWithHost = source.kind === "host" || destination.kind === "host";
  return source.ends.some((from) =>
    destination.ends.some((to) => {
      if (from.text === to.text) return false;
      return !isWithHost || from.node === undefined || from.node !== to.node;
    }),
  );
}

interface PairDecisions {
  readonly egress: Decision;
  readonly ingress: Decision;
}

/** Before, then after; of egress and ingress. */
function reachOf(verdicts: readonly (readonly PacketVerdicts[])[]): Omit<PairReach, "source" | "destination"> {
  const builder = new BreaksBuilder();
  for (const { breaks } of verdicts.flat()) builder.add(breaks);
  const { breaks } = builder;
  const cells = cellsOf(breaks).map((cell) => {
    const shape = shapeOf(cell, breaks);
    const [before = "allowed", after = "allowed"] = verdicts.map((both): Verdict => {
      return both.every((each) => each.allows(shape)) ? "allowed" : "denied";
    });
    return { ...cell, before, after };
  });
  return { cells: merged(cells), breaks, differs: cells.some(({ before, after }) => before !== after) };
}

/** Ranges of ports that follow each other and have the same verdicts are one. */
function merged(cells: readonly ReachCell[]): readonly ReachCell[] {
  const all: ReachCell[] = [];
  for (const cell of cells) {
    const last = all.at(-1);
    const { destination } = cell;
    const isNext =
      last?.destination !== undefined &&
      destination?.first === last.destination.last + 1 &&
      [last.protocol === cell.protocol, last.before === cell.before, last.after === cell.after].every(Boolean) &&
      last.source?.first === cell.source?.first;
    if (isNext && last?.destination !== undefined && destination !== undefined)
      all.splice(-1, 1, { ...last, destination: { first: last.destination.first, last: destination.last } });
    else all.push(cell);
  }
  return all;
}

/** What one program says about the packets between two ends. */
interface Decision {
  /** The judge is asked when somebody wants to know. */
  readonly verdicts: PacketVerdicts;
}

/** Of both states: what says the same in both is the same object. */
class Decisions {
  private readonly index = new PacketVerdictsIndex();
  private readonly byText = new Map<string, Decision>();
  readonly everything: Decision = { verdicts: this.index.everything };

  of(text: string, breaks: PacketBreaks, allows: (shape: PacketShape) => boolean): Decision {
    const known = this.byText.get(text) ?? this.made(breaks, allows);
    this.byText.set(text, known);
    return known;
  }

  private made(breaks: PacketBreaks, allows: (shape: PacketShape) => boolean): Decision {
    let known: PacketVerdicts | undefined;
    const ask = () => this.index.of(breaks, allows);
    return {
      get verdicts() {
        known ??= ask();
        return known;
      },
    };
  }
}

class State {
  readonly facts: PeerFacts;
  private readonly source: ProgramSource;
  private readonly programsByEnd = new Map<End, readonly [Program | undefined, Program | undefined]>();
  private readonly answers = new Map<Program, ProgramAnswers>();

  constructor(
    state: ReachState,
    private readonly programs: Programs,
    private readonly name: "before" | "after",
    private readonly decisions: Decisions,
  ) {
    const { resources, settingsOf, isUnenforcedAt = () => false } = state;
    const judge = new IndexedJudge(resources, settingsOf);
    this.source = { resources, judge, settingsOf, isUnenforcedAt };
    this.facts = new PeerFacts(resources, judge);
  }

  /** Of egress, then of ingress. */
  programsOf(end: End): readonly [Program | undefined, Program | undefined] {
    const known = this.programsByEnd.get(end);
    if (known !== undefined) return known;
    const endpoint = end[this.name];
    const made = (["egress", "ingress"] as const).map((direction) =>
      endpoint === undefined ? undefined : this.programs.of(endpoint, direction, this.source),
    );
    const both = [made[0], made[1]] as const;
    this.programsByEnd.set(end, both);
    return both;
  }

  /** With the indexes of the classes of both. */
  decision(own: End, peer: End, direction: Direction, [ownClass, peerClass]: readonly [number, number]): Decision {
    const program = this.programsOf(own)[direction === "egress" ? 0 : 1];
    const endpoint = own[this.name];
    if (program === undefined || endpoint === undefined) return this.decisions.everything;
    const answers = this.answers.get(program) ?? new ProgramAnswers(program, this.facts);
    this.answers.set(program, answers);
    const asked = answers.of(own, ownClass, "own") * MOST_ANSWERS + answers.of(peer, peerClass, "peer");
    const known = answers.decisions.get(asked);
    if (known !== undefined) return known;
    const [source, destination] = direction === "egress" ? [own.address, peer.address] : [peer.address, own.address];
    const made = this.decisions.of(`${program.id} ${answers.textOf(asked)}`, program.breaks, (shape) => {
      return this.source.judge.verdict({ ...shape, source, destination }, endpoint, direction) === "allow";
    });
    answers.decisions.set(asked, made);
    return made;
  }
}

/** More classes than this cannot be compared in pairs. */
const MOST_ANSWERS = 2 ** 24;

/** What the tests of a program say about each class; equal answers have the same number. */
class ProgramAnswers {
  readonly decisions = new Map<number, Decision>();
  private readonly numbers = new Map<string, number>();
  private readonly texts: string[] = [];
  private readonly known = { own: new Map<number, number>(), peer: new Map<number, number>() };

  constructor(
    private readonly program: Program,
    private readonly facts: PeerFacts,
  ) {}

  of(end: End, index: number, side: "own" | "peer"): number {
    const known = this.known[side].get(index);
    if (known !== undefined) return known;
    const tests = side === "own" ? this.program.ownTests : this.program.peerTests;
    const answers = tests.map((test) => this.facts.answer(test, end.address, end.text));
    const text = `${end.address.family} ${answers.join(",")}`;
    const number = this.numbers.get(text) ?? this.texts.push(text) - 1;
    this.numbers.set(text, number);
    this.known[side].set(index, number);
    return number;
  }

  /** The same in both states, unlike the numbers. */
  textOf(asked: number): string {
    return JSON.stringify([this.texts[Math.floor(asked / MOST_ANSWERS)], this.texts[asked % MOST_ANSWERS]]);
  }
}

function declaredPorts(states: readonly PolicyResources[]): ReadonlyMap<string, ReadonlySet<number>> {
  const ports = new Map<string, Set<number>>();
  for (const { endpoints, hostEndpoints } of states) {
    for (const { spec } of [...endpoints, ...hostEndpoints]) {
      for (const { name, port } of spec.ports ?? []) {
        if (name === undefined) continue;
        const numbers = ports.get(name) ?? new Set();
        ports.set(name, numbers.add(port));
      }
    }
  }
  return ports;
}

function servicePorts(states: readonly PolicyResources[]) {
  const slices = states.flatMap(({ serviceEndpoints = [] }) => serviceEndpoints);
  const grouped = Map.groupBy(slices, ({ namespace, service }) => `${namespace}/${service}`);
  return new Map(
    Array.from(grouped, ([name, all]) => [
      name,
      all.flatMap(({ ports }) => ports.map(({ protocol, port }) => ({ protocol, port }))),
    ]),
  );
}

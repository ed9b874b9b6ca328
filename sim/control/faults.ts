/** What happens to replicas and to the API that they use, drawn by a seed. */
import type { SimulatedApi } from "../datastore/simulated-api.ts";
import type { FaultyNetwork } from "../faults/network.ts";
import type { Random } from "../schedule/random.ts";

/** A program in a container, as far as it can be disturbed. */
export interface Disturbed {
  readonly name: string;
  start(): void;
  end(): void;
  freeze(milliseconds: number): void;
  readonly process: { killAfter(effects: number): void } | undefined;
}

export interface FaultSite {
  readonly network: FaultyNetwork;
  readonly api: SimulatedApi;
  readonly replicas: readonly Disturbed[];
}

export const LONGEST_FREEZE = 40_000;
const LATEST_KILL = 40;

type Fault = (site: FaultSite, replica: Disturbed, random: Random) => void;

const FAULTS: readonly Fault[] = [
  (_, { process }, random) => process?.killAfter(random.below(LATEST_KILL)),
  (_, { process }, random) => process?.killAfter(random.below(LATEST_KILL)),
  (_, replica) => replica.end(),
  (_, replica, random) => replica.freeze(random.below(LONGEST_FREEZE)),
  ({ replicas }) => startAll(replicas),
  ({ replicas }) => startAll(replicas),
  ({ network }, { name }) => network.cut(name),
  ({ network }, { name }) => network.heal(name),
  ({ network }) => {
    network.disturbance = { delay: [0, 400], lostRequest: 0.05, lostAnswer: 0.1, lateRequest: 0.02, lateAnswer: 0.1 };
  },
  ({ network }) => {
    network.disturbance = { delay: [0, 50], lostRequest: 0, lostAnswer: 0, lateRequest: 0 };
  },
  ({ api }, _, random) => api.restart(random.below(20_000)),
  ({ api }) => api.compact(),
  ({ api }, { name }, random) => api.stallWatches(name, random.below(60_000)),
];

export function disturb(site: FaultSite, random: Random): void {
  random.pick(FAULTS)(site, random.pick(site.replicas), random);
}

/** Ends all faults but those that end by themselves, within `LONGEST_FREEZE`. */
export function heal({ network, replicas }: FaultSite): void {
  network.disturbance = { delay: [0, 5], lostRequest: 0, lostAnswer: 0, lateRequest: 0 };
  for (const { name } of replicas) network.heal(name);
  startAll(replicas);
}

function startAll(replicas: readonly Disturbed[]): void {
  for (const replica of replicas) replica.start();
}

/**
 * How long the judge of a sidecar takes to decide, and to apply a whole state, by the number of rules and by what they
 * differ in; and what 100,000 members of a set cost. `make bench BENCH=request-judge`.
 * Decision: docs/decisions/requests-decided-in-the-sidecar.md.
 */

import { type IncomingRequest, RequestJudge } from "../src/alp/judge/request-judge.ts";
import { decodeFromAgent } from "../src/alp/protocol/decode-message.ts";
import type { SidecarPeer, SidecarRule, SidecarSet, SidecarUpdate } from "../src/alp/protocol/sidecar-state.ts";
import { parseAddress } from "../src/ip/address.ts";

const COUNTS = [1, 100, 1_000, 10_000];
const MEMBERS = 100_000;
const ROUNDS = 4;
const ROUND_MICROSECONDS = 20_000;
/** Decisions for each look at the time. */
const BATCH = 10;
const CLIENT = "10.9.0.7";
const source = parseAddress(CLIENT);
if (source === undefined) throw new Error(CLIENT);

/** What the rule at a place has of its own. The request matches the last of `count` rules only. */
type OwnCriteria = (place: number, count: number) => Partial<Pick<SidecarRule, "source" | "destination" | "http">>;

const WAYS: Readonly<Record<string, OwnCriteria>> = {
  "exact paths": (place, count) => ({ http: { methods: ["GET"], paths: [{ exact: pathOf(place, count) }] } }),
  prefixes: (place, count) => ({ http: { paths: [{ prefix: pathOf(place, count) }] } }),
  clients: (place, count) => ({ source: ofClient(place, count), http: { paths: [{ prefix: "/" }] } }),
  networks: (place, count) => ({ source: { nets: [networkOf(place, count)] } }),
  "ports, tried one by one": (place, count) => ({ destination: onPort(place === count - 1 ? 80 : 1_000 + place) }),
};

const REQUEST: IncomingRequest = {
  source,
  sourcePort: 40_000,
  principal: "spiffe://cluster.local/ns/shop/sa/buyer",
  destinationPort: 80,
  http: { method: "GET", path: "/service-last/items?page=2" },
};

function pathOf(place: number, count: number): string {
  return place === count - 1 ? "/service-last/items" : `/service-${place}/items`;
}

function ofClient(place: number, count: number): SidecarPeer {
  return place === count - 1 ? { sets: ["last"], identities: "last-accounts" } : { sets: [`set-${place}`] };
}

function networkOf(place: number, count: number): string {
  return place === count - 1 ? "10.9.0.0/24" : `10.${100 + (place >> 8)}.${place & 255}.0/24`;
}

function onPort(port: number): SidecarPeer {
  return { ports: { ranges: [[port, port]] } };
}

/** One policy for each rule, all in one tier. */
function stateOf(own: OwnCriteria, count: number): SidecarUpdate {
  const sets: Record<string, SidecarSet> = { "last-accounts": { members: ["shop/buyer"] } };
  const policies = Object.fromEntries(
    Array.from({ length: count }, (_, place) => {
      const rule: SidecarRule = { index: 0, action: "Allow", source: {}, destination: {}, ...own(place, count) };
      for (const name of rule.source.sets ?? []) sets[name] = { members: [addressOf(place, name)] };
      return [`policy-${place}`, { title: `policy-${place}`, rules: [rule] }];
    }),
  );
  const tiers = [{ name: "default", defaultAction: "Deny" as const, policies: Object.keys(policies) }];
  return {
    type: "update",
    revision: 1,
    addresses: ["10.0.0.1"],
    evaluation: { tiers, profiles: [] },
    policies,
    sets,
  };
}

function addressOf(place: number, set: string): string {
  return set === "last" ? CLIENT : `10.1.${(place >> 8) & 255}.${place & 255}`;
}

/** Time of the processor, not of the clock, and the best of several rounds: others use this machine too. */
function microsecondsOf(run: () => unknown): number {
  return bestOf(() => {
    const start = processorMicroseconds();
    let runs = 0;
    for (; processorMicroseconds() - start < ROUND_MICROSECONDS; runs += BATCH) {
      for (let each = 0; each < BATCH; each += 1) run();
    }
    return (processorMicroseconds() - start) / runs;
  });
}

function millisecondsOf(run: () => unknown): number {
  return bestOf(() => {
    const start = processorMicroseconds();
    run();
    return (processorMicroseconds() - start) / 1_000;
  });
}

function bestOf(figure: () => number): number {
  return Math.min(...Array.from({ length: ROUNDS }, figure));
}

function processorMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function judgeWith(line: string): RequestJudge {
  const message = decodeFromAgent(line);
  if (message.type !== "update") throw new Error(message.type);
  const judge = new RequestJudge("cluster.local");
  judge.apply(message);
  return judge;
}

console.log("µs for a decision; in brackets: ms to decode and apply the whole state");
console.table(
  Object.fromEntries(
    Object.entries(WAYS).map(([way, own]) => {
      const cells = COUNTS.map((count) => {
        const line = JSON.stringify(stateOf(own, count));
        const judge = judgeWith(line);
        if (judge.decide(REQUEST).verdict !== "allow") throw new Error(`${way}: ${judge.decide(REQUEST).reason}`);
        const decision = microsecondsOf(() => judge.decide(REQUEST));
        const applied = millisecondsOf(() => judgeWith(line));
        return [`${count} rules`, `${decision.toFixed(1)} (${applied.toFixed(0)})`];
      });
      return [way, Object.fromEntries(cells)];
    }),
  ),
);

const members = Array.from({ length: MEMBERS }, (_, index) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
const large = { ...stateOf(() => ({ source: { sets: ["last"] } }), 1), sets: { last: { members } } };
const line = JSON.stringify(large);
const whole = millisecondsOf(() => judgeWith(line));
const judge = judgeWith(line);
let revision = 1;
const change = microsecondsOf(() => {
  revision += 1;
  const add = [`11.${(revision >> 16) & 255}.${(revision >> 8) & 255}.${revision & 255}`];
  judge.apply({ type: "update", revision, sets: { last: { add, remove: [] } } });
});
console.log(`${MEMBERS} members: ${whole.toFixed(0)} ms to decode and apply, ${change.toFixed(1)} µs for one more`);

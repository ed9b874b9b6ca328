/**
 * Policies change while connections are open: with `openConnections: End` exactly those end that the judge denies now, and of the others
 * not one byte is lost; with `Keep` none ends. `OPEN_SEED` repeats a run.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { seededRandom, shuffled } from "../../bench/support/seeded-random.ts";
import { addressOf, formatAddress, parseAddress } from "../../src/ip/address.ts";
import { readConnectionTable } from "../../src/linux/conntrack-events.ts";
import { NODE_AGENT_CONFIGURATION, TIER } from "../../src/model/kinds.ts";
import {
  type NodeAgentConfigurationSpec,
  nodeAgentConfiguration,
  nodeAgentSettings,
} from "../../src/model/node-agent-configuration.ts";
import { tier } from "../../src/model/tier.ts";
import { readPolicy } from "../../src/policy/read-resources.ts";
import { launchAgent } from "../agent/agent.ts";
import { expectedDecisions, type JudgedWorld, judgedPacket } from "../flows/expected-decisions.ts";
import { SERVICE, serviceRules } from "../flows/flow-site.ts";
import { type RandomPolicies, randomPolicies } from "../flows/random-policies.ts";
import { hostProblem } from "../support/host.ts";
import { poolChange } from "../support/ipam.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { type Conversation, type EchoServer, openTcp, openUdp, serveEchoes } from "./conversation.ts";
import { HOST_NODE, type HostSite, openHostSite } from "./host-site.ts";
import type { End } from "./policy-site.ts";

const needs = [hostProblem(), program("nft"), program("kill")];
const test = testNeeding(...needs);
const SEED = Number(process.env["OPEN_SEED"] ?? Date.now() % 1_000_000);
const SIZE = proofSize({ everyDay: { rounds: 4, conversations: 40 }, soak: { rounds: 60, conversations: 150 } });
const LABELS = {
  "x/a": { app: "a", role: "server" },
  "x/b": { app: "b", role: "server" },
  "y/a": { app: "a" },
  "y/b": { app: "b" },
};
const ENDS = [...Object.keys(LABELS), "outside", "side", "host"];
const PORTS = [80, 81] as const;
const NO_POLICIES: RandomPolicies = { networkPolicies: [], globalPolicies: [], hostEndpoints: [] };
const OPENING_MILLISECONDS = 500;

interface Asked {
  readonly from: string;
  readonly family: 4 | 6;
  readonly protocol: "tcp" | "udp";
  /** Whom it asks: an end, or what leads to one of several. */
  readonly to: string;
  readonly port: number;
}

interface Open extends Asked {
  readonly conversation: Conversation;
  readonly server: { readonly end: string; readonly port: number };
  readonly id: number;
}

describe(`open connections (OPEN_SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  let site: HostSite;
  let agent: Pick<HostSite["policies"]["agent"], "signal" | "ended" | "log">;
  const servers = new Map<string, EchoServer>();
  let open: readonly Open[] = [];
  let count = 0;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openHostSite();
    agent = site.policies.agent;
    await site.policies.labelNamespace("y", {});
    for (const [name, labels] of Object.entries(LABELS)) {
      if (name === "x/a") await site.policies.labelPod(name, labels);
      else await site.policies.addPod(name, labels);
    }
    const pools = [
      poolChange("blue", "10.50.0.0/16", { natOutgoing: true }),
      poolChange("blue6", "fd50::/64", { natOutgoing: true }),
    ];
    const tiers = [
      tier.make({ name: "first" }, { order: 10, defaultAction: "Deny" }),
      tier.make({ name: "passing" }, { order: 20, defaultAction: "Pass" }),
    ].map((each) => ({ kind: "put" as const, key: TIER.key({ name: each.metadata.name }), value: tier.write(each) }));
    await site.policies.site.store.put([...pools, ...tiers]);
    const { host } = site.policies.site;
    await host.must(["nft", "-f", "-"], { stdin: serviceRules(endOf) });
    for (const name of ENDS)
      for (const port of PORTS) servers.set(`${name} ${port}`, await serveEchoes(endOf(name).netns, port));
  });
  afterAll(async () => {
    for (const { conversation } of open) conversation[Symbol.dispose]();
    for (const server of servers.values()) server[Symbol.dispose]();
    await site?.[Symbol.asyncDispose]();
  });

  const endOf = (name: string): End =>
    (name.includes("/") ? site.policies.ends.get(name) : undefined) ?? site.end(name);

  test(
    "with End exactly those end that the judge denies now",
    async () => {
      await apply(NO_POLICIES, { openConnections: "End" });
      let ended = 0;
      for (let round = 0; round < SIZE.rounds; round++) {
        await openMore();
        ended += await expectExactlyDeniedEnd(round, () => apply(randomPolicies(random), { openConnections: "End" }));
        await apply(NO_POLICIES, { openConnections: "End" });
      }
      expect(ended).toBeGreaterThan(SIZE.rounds);
    },
    SIZE.rounds * 60_000,
  );

  test("with Keep none ends, and all that are denied end once it is End", async () => {
    await apply(NO_POLICIES, { openConnections: "Keep" });
    await openMore();
    await apply(randomPolicies(random), { openConnections: "Keep" });
    await expectWorking("kept", open);

    await expectExactlyDeniedEnd(0, () => configure({ openConnections: "End" }));
  }, 60_000);

  test("an agent that was killed before it ended them ends them when it starts again", async () => {
    await apply(NO_POLICIES, { openConnections: "Keep" });
    await openMore();
    await apply(randomPolicies(random), { openConnections: "Keep" });
    await expectExactlyDeniedEnd(0, async () => {
      await agent.signal("KILL");
      await agent.ended;
      await configure({ openConnections: "End" });
      agent = launchAgent(site.policies.site.host);
    });
  }, 60_000);

  async function apply(policies: RandomPolicies, spec: NodeAgentConfigurationSpec): Promise<void> {
    await site.policies.setPolicies(policies.networkPolicies);
    const configurations = [nodeAgentConfiguration.make({ name: `node.${HOST_NODE}` }, spec)];
    await site.apply({ policies: policies.globalPolicies, hostEndpoints: policies.hostEndpoints, configurations });
  }

  async function configure(spec: NodeAgentConfigurationSpec): Promise<void> {
    const configuration = nodeAgentConfiguration.make({ name: `node.${HOST_NODE}` }, spec);
    const key = NODE_AGENT_CONFIGURATION.key({ name: configuration.metadata.name });
    await site.policies.site.store.put([{ kind: "put", key, value: nodeAgentConfiguration.write(configuration) }]);
  }

  /** Until there are as many as wanted; every other one is idle from now on. */
  async function openMore(): Promise<void> {
    const asked = shuffled(allAsked(), random).slice(0, Math.max(0, SIZE.conversations - open.length));
    const opened = await Promise.all(asked.map((each) => openOne(each)));
    const known = await trackedConnections();
    open = [
      ...open,
      ...opened.flatMap(({ asked: each, conversation }): readonly Open[] => {
        const tracked = conversation && known.find((entry) => isOf(entry, each, conversation));
        if (conversation === undefined || tracked === undefined) return [];
        const end = ENDS.find((name) => addressesOf(name).includes(tracked.answering));
        if (end === undefined) return [];
        return [{ ...each, conversation, id: tracked.id, server: { end, port: tracked.answeringPort } }];
      }),
    ];
    expect(open.length).toBeGreaterThan(SIZE.conversations / 2);
    await expectWorking("opened", open);
  }

  async function openOne(asked: Asked) {
    const { from, to, family, protocol, port } = asked;
    count += 1;
    const options = {
      netns: endOf(from).netns,
      address: addressAsked(to, family),
      port,
      patience: OPENING_MILLISECONDS,
    };
    const name = `${count} ${from} to ${to}`;
    const conversation = protocol === "tcp" ? await openTcp(name, options) : await openUdp(name, options);
    if (conversation === undefined || (await conversation.works())) return { asked, conversation };
    conversation[Symbol.dispose]();
    return { asked, conversation: undefined };
  }

  async function expectExactlyDeniedEnd(round: number, change: () => Promise<void>): Promise<number> {
    let isChanging = true;
    const busy = open.filter(({ protocol }, index) => protocol === "tcp" && index % 2 === 0);
    const sending = busy.map(async ({ conversation }) => {
      while (isChanging && (await conversation.works()));
    });
    await change();
    const world = await worldOf();
    const [denied, allowed] = [
      open.filter((each) => isDenied(each, world)),
      open.filter((each) => !isDenied(each, world)),
    ];
    let left: readonly string[] = [];
    const areEnded = async () => {
      const ids = new Set((await trackedConnections()).map(({ id }) => id));
      left = denied.filter((each) => ids.has(each.id) || !isReset(each)).map(textOf);
      return left.length === 0;
    };
    await pollUntil(areEnded, "the denied connections to end", 20_000).catch(() => {});
    isChanging = false;
    await Promise.all(sending);
    expect({ round, seed: SEED, left }).toEqual({ round, seed: SEED, left: [] });
    await expectWorking(`round ${round}`, allowed);
    for (const { conversation } of denied) conversation[Symbol.dispose]();
    open = allowed;
    return denied.length;
  }

  /** Both ends have heard of it. */
  function isReset({ protocol, conversation, server }: Open): boolean {
    if (protocol === "udp") return true;
    return conversation.isLost && servers.get(`${server.end} ${server.port}`)?.hasLost(conversation.name) === true;
  }

  async function expectWorking(when: string, all: readonly Open[]): Promise<void> {
    const ids = new Set((await trackedConnections()).map(({ id }) => id));
    const outcomes = await Promise.all(all.map(async (each) => ids.has(each.id) && (await each.conversation.works())));
    const broken = all
      .filter((_, index) => outcomes[index] !== true)
      .map((each) => `${textOf(each)}: ${ids.has(each.id) ? "silent" : "not tracked any more"}`);
    expect({ when, seed: SEED, broken }).toEqual({ when, seed: SEED, broken: [] });
  }

  async function worldOf(): Promise<JudgedWorld> {
    const { resources, configurations } = await readPolicy(site.policies.store);
    return { resources, settings: nodeAgentSettings(configurations, HOST_NODE) };
  }

  function isDenied({ from, to, family, protocol, port, server, conversation }: Open, world: JudgedWorld): boolean {
    const source = sourceOf(from, to, family);
    const of = {
      ...{ protocol: protocol === "tcp" ? 6 : 17, source, sourcePort: conversation.localPort },
      ...{ destination: addressesOf(server.end)[family === 4 ? 0 : 1] ?? "", destinationPort: server.port },
    };
    const asked = addressAsked(to, family);
    const isTranslated = asked !== of.destination || port !== server.port;
    const packet = judgedPacket(of, isTranslated ? { address: asked, port } : undefined);
    return expectedDecisions({ packet, from, to: server.end }, world).some(({ verdict }) => verdict === "deny");
  }

  interface Tracked {
    readonly id: number;
    readonly protocol: number;
    readonly sourcePort: number;
    readonly destination: string;
    readonly answering: string;
    readonly answeringPort: number;
  }

  async function trackedConnections(): Promise<readonly Tracked[]> {
    const all: Tracked[] = [];
    const text = (words: Uint32Array, family: 4 | 6) => textOfWords(words, family);
    await insideNetns(endOf("host").netns, () => ({
      reading: readConnectionTable({
        entry({ id, family, original, reply }) {
          all.push({
            ...{ id, protocol: original.protocol, sourcePort: original.sourcePort },
            ...{ destination: text(original.destination, family), answering: text(reply.source, family) },
            answeringPort: reply.sourcePort,
          });
        },
        pause: async () => {},
      }),
    })).reading;
    return all;
  }

  function isOf(entry: Tracked, { to, family, protocol }: Asked, { localPort }: Conversation): boolean {
    return (
      entry.protocol === (protocol === "tcp" ? 6 : 17) &&
      entry.sourcePort === localPort &&
      entry.destination === canonical(addressAsked(to, family))
    );
  }

  function allAsked(): readonly Asked[] {
    const targets = [
      ...ENDS.flatMap((to) => PORTS.map((port) => ({ to, port }))),
      ...[
        { to: "service", port: 1000 },
        { to: "service", port: 1001 },
        { to: "published", port: 8080 },
      ],
    ];
    return ENDS.flatMap((from) =>
      targets
        .filter(({ to }) => to !== from && !(from === "host" && to === "published"))
        .flatMap((target) =>
          ([4, 6] as const).flatMap((family) =>
            (["tcp", "udp"] as const)
              // The host, which has several addresses, answers datagrams from another one than was asked.
              .filter((protocol) => protocol === "tcp" || target.to !== "host")
              .map((protocol) => ({ from, family, protocol, ...target })),
          ),
        ),
    );
  }

  function addressAsked(to: string, family: 4 | 6): string {
    if (to === "service") return SERVICE[family];
    return endOf(to).addresses[family === 4 ? 0 : 1];
  }

  /** The host has several. */
  function sourceOf(from: string, to: string, family: 4 | 6): string {
    if (from === "host" && to === "side") return family === 4 ? "203.0.113.1" : "2001:db8:2::1";
    return endOf(from).addresses[family === 4 ? 0 : 1];
  }

  function addressesOf(name: string): readonly string[] {
    return endOf(name).addresses.map(canonical);
  }
});

function textOf({ from, to, family, protocol, port, server }: Open): string {
  return `${protocol} ${from} to ${to} port ${port}, IPv${family}, answered by ${server.end} port ${server.port}`;
}

function canonical(text: string): string {
  const address = parseAddress(text);
  return address === undefined ? text : formatAddress(address);
}

function textOfWords(words: Uint32Array, family: 4 | 6): string {
  const value = [...words.subarray(0, family === 4 ? 1 : 4)].reduce((sum, word) => (sum << 32n) | BigInt(word), 0n);
  const address = addressOf(family, value);
  return address === undefined ? "" : formatAddress(address);
}

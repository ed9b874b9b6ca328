/**
 * What the rules of the policy table tell about connections, in a real kernel: the label names the rules that accepted, at each
 * point, and denied packets come to the log group, up to a limit. The table is that of the agent, without its process.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EnforcedTable } from "../../src/agent/policy/enforced-table.ts";
import { FLOW_GROUP, POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { readLabel } from "../../src/flows/rule-label.ts";
import { identity } from "../../src/identity.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { forgetConnections } from "../../src/linux/conntrack.ts";
import { readConnectionTable } from "../../src/linux/conntrack-events.ts";
import { type GroupListener, listenToGroup } from "../../src/linux/log-group.ts";
import { closeNetlinkSocket, ownSockets, type SocketOpener } from "../../src/linux/netlink-socket.ts";
import { listRules } from "../../src/linux/nftables/read.ts";
import { writeSysctl } from "../../src/linux/sysctl.ts";
import { type NetworkPolicySpec, networkPolicy } from "../../src/model/network-policy.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { POINTS, type Point } from "../../src/policy/point.ts";
import { askTcp, askUdp, hearUdp, insideNetns, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { changesBetween, NO_RESOURCES } from "../support/policy-changes.ts";
import { pollUntil } from "../support/poll.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";
import { openFlow, serveEcho } from "./flow.ts";

const area = new NetnsArea("flowlabels");
const NODE = "here";
const [CLIENT, SERVER, SERVICE] = ["10.92.1.2", "10.92.2.2", "10.96.0.1"];
const [OPEN, CLOSED, UNTRACKED] = [5331, 5332, 5333];
const OTHERS_BIT = 3;
const PER_SECOND = 5;

const able = canMakeNetns && ["nft", "bash"].every((name) => Bun.which(name) !== null);
const why = able ? "" : " (skipped: needs root, ip, nsenter, nft and bash)";

const endpoint = (index: number, address: string) =>
  workloadEndpoint.make(
    {
      name: `${NODE}-k8s-pod${index}-eth0`,
      namespace: "shop",
      labels: { [`${identity.labelPrefix}namespace`]: "shop", [`${identity.labelPrefix}orchestrator`]: "k8s" },
    },
    {
      ...{ node: NODE, orchestrator: "k8s", pod: `pod${index}`, endpoint: "eth0" },
      ...{ ipNetworks: [`${address}/32`], interfaceName: `${identity.interfacePrefix}${index}` },
    },
  );
const policy = (name: string, spec: Partial<NetworkPolicySpec>) =>
  networkPolicy.make({ name, namespace: "shop" }, { tier: "default", ...spec });
const allow = (protocol: string, ...ports: number[]) => ({
  action: "Allow" as const,
  protocol,
  destination: { ports },
});

const RESOURCES = {
  ...NO_RESOURCES,
  endpoints: [endpoint(0, CLIENT), endpoint(1, SERVER)],
  networkPolicies: [
    policy("out", { types: ["Egress"], egress: [{ action: "Allow" }] }),
    policy("in", { types: ["Ingress"], ingress: [allow("TCP", OPEN), allow("UDP", OPEN, UNTRACKED)] }),
  ],
};
const TO_SERVER: Labels = { "workload egress": "shop/out egress 0", "workload ingress": "shop/in ingress 0" };

type Labels = Readonly<Partial<Record<Point, string>>>;

interface Connection {
  readonly protocol: number;
  readonly source: string;
  readonly port: number;
  readonly label: Uint8Array;
}

describe.skipIf(!able)(`labels and reports of rules${why}`, () => {
  let host: TestNetns;
  let client: TestNetns;
  let server: TestNetns;
  let folder: TemporaryDirectory;
  let told: string[];
  let enforced: EnforcedTable;
  let ahead = 0;

  beforeAll(() => {
    area.sweep();
    [host, client, server] = [area.create("host"), area.create("client"), area.create("server")];
    connect(host, client, `${identity.interfacePrefix}0`, CLIENT);
    connect(host, server, `${identity.interfacePrefix}1`, SERVER);
    insideNetns(host.path, () => writeSysctl("net/ipv4/ip_forward", "1"));
  });
  afterAll(() => area.sweep());
  beforeEach(async () => {
    folder = temporaryDirectory("flowlabels");
    told = [];
    runIn(host, ["nft", "flush", "ruleset"]);
    forgetAll();
    enforced = open();
    apply("Enabled");
    await labelled();
  });
  afterEach(() => {
    enforced.close();
    folder.remove();
  });

  const opener: SocketOpener = {
    openSocket: (protocol) => insideNetns(host.path, () => ownSockets.openSocket(protocol)),
  };
  const forgetAll = () => {
    const socket = opener.openSocket("netfilter");
    forgetConnections(socket, [{ family: 4 }, { family: 6 }]);
    closeNetlinkSocket(socket);
  };
  const path = () => join(folder.path, "rule-numbers");
  const open = () =>
    new EnforcedTable({
      host: opener,
      clock: { elapsed: () => performance.now() + ahead, now: () => new Date(), wait: async () => {} },
      ...{ node: NODE, hasServices: false, isRequired: true, ruleNumbersPath: path() },
      ...{ hasUnknownContainers: () => false, hasIpvs: () => false },
      routes: { kernel: { linkServing: () => undefined }, events: async function* () {} },
      ...{ report: (message) => told.push(message), patiently: (work) => work() },
      ...{ changed: () => {}, adopted: () => {}, moved: () => {} },
    });
  const configuration = (flows: "Enabled" | "Disabled") =>
    nodeAgentConfiguration.make({ name: "default" }, { flows, flowDeniedPerSecond: PER_SECOND });
  const apply = (flows: "Enabled" | "Disabled", before = NO_RESOURCES, after = RESOURCES) => {
    enforced.keeper.update(changesBetween(before, after, configuration(flows)));
    enforced.flows.applied();
  };
  const restart = (flows: "Enabled" | "Disabled" = "Enabled") => {
    enforced.close();
    enforced = open();
    apply(flows);
  };
  /** A look at the numbers in the kernel may take more than a moment. */
  const labelled = () =>
    pollUntil(() => {
      enforced.flows.labelMore();
      return enforced.flows.labelsSince !== undefined;
    }, "labels");
  const connections = async (): Promise<readonly Connection[]> => {
    const found: Connection[] = [];
    await insideNetns(host.path, () =>
      readConnectionTable({
        entry({ original, label }) {
          found.push({
            protocol: original.protocol,
            source: formatAddress({ family: 4, value: BigInt(original.source[0] ?? 0) }),
            port: original.destinationPort,
            label: new Uint8Array(label.buffer.slice(0)),
          });
        },
        pause: async () => {},
      }),
    );
    return found;
  };
  const meaningOf = (label: Uint8Array): Labels => {
    const comments = new Map(enforced.flows.rules());
    return Object.fromEntries(
      POINTS.flatMap((point) => {
        const field = readLabel(label, point);
        if (field.kind === "none") return [];
        return [[point, field.kind === "rule" ? (comments.get(field.number) ?? `number ${field.number}`) : "several"]];
      }),
    );
  };
  const labelsOf = async (source: string, port: number) =>
    (await connections())
      .filter((each) => each.source === source && each.port === port)
      .map(({ label }) => meaningOf(label));
  const rules = () => {
    const socket = opener.openSocket("netfilter");
    const listed = listRules(socket, POLICY_TABLE).map(({ chain, comment, expressions }) => ({
      ...{ chain, comment, expressions: withoutSetNames(expressions) },
    }));
    closeNetlinkSocket(socket);
    return listed.toSorted((left, right) => left.chain.localeCompare(right.chain));
  };
  const send = (from: TestNetns, port: number, count = 1) =>
    runIn(from, [
      "bash",
      "-c",
      `for ((i = 0; i < ${count}; i++)); do echo x > /dev/udp/${SERVER}/${port} || true; done`,
    ]);

  test("a connection names the rules that accepted it on its way out and in; bits of others stay", async () => {
    runIn(
      host,
      ["nft", "-f", "-"],
      `table ip others { chain c { type filter hook prerouting priority 0; ct label set ${OTHERS_BIT}; }; }`,
    );
    using _server = serveTcp(server.path, "server", OPEN);

    expect(await askTcp(client.path, SERVER, OPEN)).toBe(`server ${CLIENT}`);
    expect(await labelsOf(CLIENT, OPEN)).toEqual([TO_SERVER]);
    expect((await connections()).map(({ label }) => label[0])).toEqual([1 << OTHERS_BIT]);
  });

  test("packets of UDP that nobody answers are new each time, and the label stays that of one rule", async () => {
    using heard = await hearUdp(server.path, OPEN);
    runIn(client, [
      "bash",
      "-c",
      `exec 3<>/dev/udp/${SERVER}/${OPEN}; for i in 1 2 3 4 5; do echo $i >&3; sleep 0.05; done`,
    ]);

    await pollUntil(() => heard.senders.length === 5, "the server to hear five packets");
    expect(await labelsOf(CLIENT, OPEN)).toEqual([{ ...TO_SERVER, "workload ingress": "shop/in ingress 1" }]);
  });

  test("packets without tracking pass as they would without labels", async () => {
    const notrack = `udp dport ${UNTRACKED} notrack; udp sport ${UNTRACKED} notrack;`;
    runIn(
      host,
      ["nft", "-f", "-"],
      `table ip others { chain c { type filter hook prerouting priority -300; ${notrack} }; }`,
    );
    using heard = await hearUdp(server.path, UNTRACKED);
    send(client, UNTRACKED);

    await pollUntil(() => heard.senders.length === 1, "the server to hear the packet");
    expect(await connections()).toEqual([]);
  });

  test("the host itself reaches its workload, directly and by a Service", async () => {
    const dnat = `type nat hook output priority -100; ip daddr ${SERVICE} tcp dport 80 dnat to ${SERVER}:${CLOSED};`;
    runIn(host, ["nft", "-f", "-"], `table ip others { chain c { ${dnat} }; }`);
    // To an interface without pods, where the Service seems to be until its address is translated.
    runIn(host, ["ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1"]);
    runIn(host, ["bash", "-c", `ip link set up0 up; ip route add ${SERVICE}/32 dev up0 src 10.92.2.1`]);
    using _server = serveTcp(server.path, "server", CLOSED);

    expect(await askTcp(host.path, SERVER, CLOSED)).toStartWith("server ");
    expect(await askTcp(host.path, SERVICE, 80)).toStartWith("server ");
    const own: Labels = { "workload ingress": "host to its own workload" };
    expect(await labelsOf("10.92.2.1", CLOSED)).toEqual([own]);
    expect(await labelsOf("10.92.2.1", 80)).toEqual([own]);
  });

  describe("denied packets", () => {
    let listener: GroupListener;
    beforeEach(() => {
      listener = insideNetns(host.path, () => listenToGroup(FLOW_GROUP, { lock: FLOW_GROUP + 1 }));
    });
    afterEach(() => listener.close());

    test("are reported with point and rule, at most so many of each rule in a second, and all are counted", async () => {
      const count = 200;
      const begun = performance.now();
      send(client, CLOSED, count);
      const seconds = (performance.now() - begun) / 1_000;
      await Bun.sleep(200);
      const { packets } = listener.read();

      const comment = "tier default ingress default";
      expect(new Set(packets.map(({ prefix }) => prefix))).toEqual(new Set([`wi ${comment}`]));
      expect(packets.length).toBeGreaterThanOrEqual(PER_SECOND);
      expect(packets.length).toBeLessThanOrEqual(PER_SECOND * (seconds + 1));
      expect(enforced.flows.denied()).toContainEqual([comment, count]);
    });

    test("that belong to no connection are reported and counted too", async () => {
      using _server = serveEcho(server.path, OPEN);
      using flow = await openFlow(client.path, SERVER, OPEN);
      expect(await flow.works()).toBe(true);
      // What is in the middle of a connection that the kernel does not know begins none.
      insideNetns(host.path, () => writeSysctl("net/netfilter/nf_conntrack_tcp_loose", "0"));
      forgetAll();

      expect(await flow.works()).toBe(false);
      insideNetns(host.path, () => writeSysctl("net/netfilter/nf_conntrack_tcp_loose", "1"));
      expect(new Set(listener.read().packets.map(({ prefix }) => prefix.slice(3)))).toEqual(new Set(["state invalid"]));
      expect(new Map(enforced.flows.denied()).get("state invalid")).toBeGreaterThan(0);
    });

    test("are not reported while flows are switched off", async () => {
      apply("Disabled", RESOURCES);
      send(client, CLOSED);
      await Bun.sleep(200);

      expect(listener.read().packets).toEqual([]);
      expect(enforced.flows.denied()).toContainEqual(["tier default ingress default", 1]);
    });
  });

  test("flows are switched on and off without a restart; older connections have no label, and the rules are the former ones", async () => {
    apply("Disabled", RESOURCES);
    const without = rules();
    expect([enforced.flows.labelsSince, without.some(isLabel)]).toEqual([undefined, false]);
    const heard: string[] = [];
    enforced.flows.follow({
      added: (added) => heard.push(`added ${added.length}`),
      removed: () => heard.push("removed"),
      settingsChanged: () => heard.push(enforced.flows.settings.flows),
    });
    using _server = await serveUdp(server.path, "server", OPEN);
    await askUdp(client.path, SERVER, OPEN);
    const begun = Date.now();
    apply("Enabled", RESOURCES);

    expect(enforced.flows.labelsSince).toBeWithin(begun, Date.now() + 1);
    expect(await labelsOf(CLIENT, OPEN)).toEqual([{}]);
    await askUdp(client.path, SERVER, OPEN);
    expect((await labelsOf(CLIENT, OPEN)).map((each) => each["workload egress"]).toSorted()).toEqual([
      "shop/out egress 0",
      undefined,
    ]);
    apply("Disabled", RESOURCES);
    expect(rules()).toEqual(without);
    // The numbers were known already.
    expect([heard, told]).toEqual([["Enabled", "Disabled"], []]);
  });

  test("new numbers are told before the kernel has the rules", () => {
    let seen = -1;
    let comments: readonly string[] = [];
    enforced.flows.follow({
      added(added) {
        comments = added.map(([, comment]) => comment);
        seen = rules().filter(({ comment }) => comment === "shop/more ingress 0").length;
      },
      ...{ removed: () => {}, settingsChanged: () => {} },
    });
    const more = policy("more", { ingress: [allow("TCP", 1)] });
    apply("Enabled", RESOURCES, { ...RESOURCES, networkPolicies: [...RESOURCES.networkPolicies, more] });

    expect([comments, seen]).toEqual([["shop/more ingress 0"], 0]);
    expect(rules().filter(({ comment }) => comment === "shop/more ingress 0").length).toBe(1);
  });

  test("an agent that starts again rewrites no rule because of numbers", () => {
    const [before, since] = [rules(), enforced.flows.labelsSince];
    expect(before.some(isLabel)).toBe(true);
    restart();

    expect(rules()).toEqual(before);
    expect([enforced.flows.labelsSince, told]).toEqual([since, []]);
  });

  test("an agent whose file is damaged gives no number again that the kernel has, and says so", async () => {
    const before = new Map(enforced.flows.rules());
    using _server = serveTcp(server.path, "server", OPEN);
    await askTcp(client.path, SERVER, OPEN);
    writeFileSync(path(), "no numbers");
    restart();
    await labelled();

    const now = enforced.flows.rules().map(([number]) => number);
    expect(now.length).toBe(before.size);
    expect(now.filter((number) => before.has(number))).toEqual([]);
    expect(told).toEqual([expect.stringContaining("damaged")]);
    // Of a connection that is older than the damage: not another rule.
    expect(Object.values((await labelsOf(CLIENT, OPEN))[0] ?? {})).toEqual([
      expect.stringMatching(/^number \d+$/),
      expect.stringMatching(/^number \d+$/),
    ]);
    // Nor if nothing of it is left but the connections.
    const higher = Math.max(...now);
    rmSync(path());
    restart();
    await labelled();
    expect(Math.min(...enforced.flows.rules().map(([number]) => number))).toBeGreaterThan(higher);
  });

  test("policies are enforced without numbers of rules, and labels are written as soon as they can be", async () => {
    enforced.close();
    runIn(host, ["nft", "flush", "ruleset"]);
    rmSync(path());
    mkdirSync(path());
    enforced = open();
    apply("Enabled");
    apply("Enabled", RESOURCES, { ...RESOURCES, networkPolicies: [...RESOURCES.networkPolicies, policy("more", {})] });

    expect(told).toEqual([expect.stringContaining("flows do not name the rules of new connections until they can")]);
    expect([enforced.flows.labelsSince, rules().some(isLabel)]).toEqual([undefined, false]);
    using _server = serveTcp(server.path, "server", OPEN);
    expect(await askTcp(client.path, SERVER, OPEN)).toBe(`server ${CLIENT}`);
    rmSync(path(), { recursive: true });
    enforced.flows.labelMore();
    expect(rules().some(isLabel)).toBe(false);
    ahead += 30_000;
    const begun = Date.now();
    enforced.flows.labelMore();
    expect(enforced.flows.labelsSince).toBeGreaterThanOrEqual(begun);
    forgetAll();
    expect(await askTcp(client.path, SERVER, OPEN)).toBe(`server ${CLIENT}`);
    expect(await labelsOf(CLIENT, OPEN)).toEqual([TO_SERVER]);
    expect(told.length).toBe(1);
  });

  test("an agent that starts with flows switched off forgets since when labels were written", () => {
    restart("Disabled");
    const switched = Date.now();
    restart("Enabled");

    expect(enforced.flows.labelsSince).toBeGreaterThanOrEqual(switched);
  });

  test("the number of a rule that is gone is free when no connection has it", async () => {
    using _server = await serveUdp(server.path, "server", OPEN);
    await askUdp(client.path, SERVER, OPEN);
    const numberOf = (comment: string) => enforced.flows.rules().find(([, each]) => each === comment)?.[0];
    const [used = 0, unused = 0] = [numberOf("shop/in ingress 1"), numberOf("shop/in ingress 0")];
    const removed: number[] = [];
    enforced.flows.follow({
      ...{ added: () => {}, settingsChanged: () => {} },
      removed: (numbers) => removed.push(...numbers),
    });
    apply("Enabled", RESOURCES, { ...RESOURCES, networkPolicies: [] });
    const look = async () => {
      await Bun.sleep(2);
      const since = Date.now();
      const numbers = (await connections()).flatMap(({ label }) =>
        POINTS.flatMap((point) => {
          const field = readLabel(label, point);
          return field.kind === "rule" ? [field.number] : [];
        }),
      );
      await Bun.sleep(2);
      enforced.flows.noteUse(since, numbers);
    };
    // The first one finds that the rule is gone, two more must miss its number.
    await look();
    await look();
    expect(removed).toEqual([]);
    await look();
    expect([removed.includes(used), removed.includes(unused)]).toEqual([false, true]);
    forgetAll();
    await look();
    expect(removed).not.toContain(used);
    await look();
    expect(removed).toContain(used);
    expect(numberOf("shop/in ingress 1")).toBeUndefined();
  });
});

function isLabel({ expressions }: Pick<ReturnType<typeof listRules>[number], "expressions">): boolean {
  return expressions.some((each) => each.kind === "set-ct" && each.key === "label");
}

/** The kernel gives anonymous sets other names each time. */
function withoutSetNames(expressions: ReturnType<typeof listRules>[number]["expressions"]) {
  return expressions.map((each) => (each.kind === "lookup" ? { ...each, set: "" } : each));
}

function connect(host: TestNetns, pod: TestNetns, name: string, address: string): void {
  const gateway = address.replace(/\.2$/, ".1");
  runIn(host, ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", pod.name]);
  runIn(host, ["ip", "addr", "add", `${gateway}/24`, "dev", name]);
  runIn(host, ["ip", "link", "set", name, "up"]);
  runIn(pod, ["ip", "addr", "add", `${address}/24`, "dev", "eth0"]);
  runIn(pod, ["ip", "link", "set", "eth0", "up"]);
  runIn(pod, ["ip", "route", "add", "default", "via", gateway]);
}

/** The collector against the real kernel: rules that write labels, connections of every kind, and what it makes of them. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { accountingPath, restoreConnectionAccounting } from "../../src/agent/flows/collector/connection-accounting.ts";
import { FLOW_GROUP } from "../../src/firewall/policy-table.ts";
import type { EndName, FromCollector, ToCollector } from "../../src/flows/collector-messages.ts";
import type { FlowLosses, FlowRecord } from "../../src/flows/flow-record.ts";
import { labelOf } from "../../src/flows/rule-label.ts";
import { identity } from "../../src/identity.ts";
import { listenToGroup } from "../../src/linux/log-group.ts";
import { closeNetns, type Netns, runInNetns } from "../../src/linux/netns.ts";
import { readSysctl, writeSysctl } from "../../src/linux/sysctl.ts";
import { openConntrackTable } from "../support/conntrack-table.ts";
import { askTcp, requireNetns, serveTcp } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

const area = new NetnsArea("fc");
const able = canMakeNetns && Bun.which("nft") !== null && Bun.which("bash") !== null;
const [EGRESS, INGRESS] = [1, 2];
const DENIED = "shop/web ingress 0";

const [LABEL_OUT, LABEL_IN] = [labelOf("workload egress", EGRESS), labelOf("workload ingress", INGRESS)];

/** The bits that a rule adds, as `ct label set` of nft takes them: one at a time. */
function labelStatements(...bytes: readonly Uint8Array[]): string {
  const bits = bytes.flatMap((label) =>
    [...label].flatMap((byte, at) =>
      [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (byte >> bit) & 1).map((bit) => at * 8 + bit),
    ),
  );
  return bits.map((bit) => `ct label set ${bit}`).join(" ");
}

/** A host between two pods: it routes, judges, and translates a Service and what leaves. */
const RULES = `
  table inet t {
    chain e { type filter hook forward priority -5; tcp dport 81 ct original proto-dst 82 ${labelStatements(LABEL_OUT)}; }
    chain f {
      type filter hook forward priority 0;
      ct state established,related accept
      tcp dport 81 limit rate 3/second burst 3 packets log prefix "wi ${DENIED}" group ${FLOW_GROUP}
      tcp dport 81 drop
      ct state new ${labelStatements(LABEL_OUT, LABEL_IN)} accept
    }
    chain n {
      type nat hook prerouting priority -100;
      ip daddr 10.96.0.1 tcp dport 80 dnat ip to 10.61.1.2:8080
      ip daddr 10.96.0.1 tcp dport 82 dnat ip to 10.61.1.2:81
    }
    chain m { type nat hook postrouting priority 100; ip daddr 10.61.1.2 tcp dport 8082 snat ip to 10.61.1.1; }
  }`;
const WEB: EndName = { kind: "pod", namespace: "shop", name: "web", isLocal: true };
const DB: EndName = { kind: "pod", namespace: "shop", name: "db", isLocal: true };
const NAMES: ReadonlyMap<string, EndName> = new Map([
  ["10.61.0.2", WEB],
  ["fd61::2", WEB],
  ["10.61.1.2", DB],
  ["fd61:1::2", DB],
  ["10.96.0.1 6 80", { kind: "service", namespace: "shop", name: "db" }],
  ["10.96.0.1 6 82", { kind: "service", namespace: "shop", name: "closed" }],
]);

type Line =
  | FromCollector
  | { readonly kind: "put"; readonly records: readonly FlowRecord[]; readonly overLimit: readonly FlowRecord[] }
  | { readonly kind: "closed" };

/** A running collector, with an agent that knows `NAMES`. */
class Running {
  /** The latest of each ID. */
  readonly records = new Map<string, FlowRecord>();
  /** Of each ID, when it was seen first. */
  readonly seenAt = new Map<string, number>();
  readonly overLimit: FlowRecord[] = [];
  readonly numbers: (readonly number[])[] = [];
  losses: FlowLosses | undefined;
  /** What it has logged. */
  said = "";
  isClosed = false;
  readonly #child;

  constructor(place: TestNetns, directory: string, given: object = {}) {
    const script = `${import.meta.dirname}/collector.process.ts`;
    this.#child = Bun.spawn(["nsenter", `--net=${place.path}`, "--", process.execPath, script, JSON.stringify(given)], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory },
    });
    void this.#hear();
    void this.#hearErrors();
  }

  tell(message: ToCollector): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    // It may have ended.
    Promise.resolve(this.#child.stdin.flush()).catch(() => {});
  }

  /** Only what has ended, or was denied. */
  of(state: FlowRecord["state"]): readonly FlowRecord[] {
    return [...this.records.values()].filter((record) => record.state === state);
  }

  /** As if the agent had ended. */
  async end(): Promise<number> {
    this.#child.stdin.end();
    return this.#child.exited;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async #hear(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of this.#child.stdout) {
      const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#take(JSON.parse(line));
    }
  }

  async #hearErrors(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.#child.stderr) {
      process.stderr.write(chunk);
      this.said += decoder.decode(chunk, { stream: true });
    }
  }

  #take(line: Line): void {
    switch (line.kind) {
      case "ready":
        this.tell({
          kind: "settings",
          settings: {
            node: "node-1",
            vxlanPort: 4789,
            historyMegabytes: 1,
            historyMilliseconds: 1,
            mostPerSecond: 2_000,
          },
        });
        this.tell({ kind: "labels written", since: Date.now() - 1_000 });
        this.tell({
          kind: "rules",
          rules: [
            [EGRESS, "shop/web egress 0"],
            [INGRESS, "shop/db ingress 0"],
          ],
        });
        this.tell({ kind: "names", names: [...NAMES].filter(([, { isLocal }]) => isLocal) });
        break;
      case "who":
        this.tell({ kind: "names", names: line.keys.map((key) => [key, NAMES.get(key) ?? { kind: "outside" }]) });
        break;
      case "put":
        for (const record of line.records) {
          this.records.set(record.id, record);
          if (!this.seenAt.has(record.id)) this.seenAt.set(record.id, Date.now());
        }
        this.overLimit.push(...line.overLimit);
        break;
      case "numbers in use":
        this.numbers.push(line.numbers);
        break;
      case "facts":
        this.losses = line.losses;
        break;
      case "closed":
        this.isClosed = true;
    }
  }
}

describe.skipIf(!able)(
  `the collector of flows${able ? "" : " (skipped: needs root, ip, nsenter, nft and bash)"}`,
  () => {
    let [host, web, db]: TestNetns[] = [];
    let hostNetns: Netns;
    let directory: TemporaryDirectory;
    let running: Running | undefined;
    const servers: Disposable[] = [];

    const netns = (place: TestNetns | undefined) => {
      if (place === undefined) throw new Error("no namespace");
      return place;
    };
    const start = async (given: object = {}) => {
      running = new Running(netns(host), directory.path, given);
      const started = running;
      await pollUntil(() => started.losses !== undefined, "the collector");
      return started;
    };
    const inWeb = (command: string) => runIn(netns(web), ["bash", "-c", command]);
    const link = (pod: TestNetns, name: string, index: number) => {
      runIn(netns(host), [
        "ip",
        "link",
        "add",
        "name",
        name,
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        pod.name,
      ]);
      runIn(netns(host), [
        "bash",
        "-c",
        `ip addr add 10.61.${index}.1/24 dev ${name}; ip addr add fd61:${index}::1/64 dev ${name} nodad; ip link set ${name} up`,
      ]);
      const routes = `ip link set eth0 up; ip addr add 10.61.${index}.2/24 dev eth0; ip addr add fd61:${index}::2/64 dev eth0 nodad; ip route add default via 10.61.${index}.1; ip -6 route add default via fd61:${index}::1`;
      runIn(pod, ["bash", "-c", routes]);
    };

    beforeAll(() => {
      area.sweep();
      [host, web, db] = [area.create("host"), area.create("web"), area.create("db")];
      hostNetns = requireNetns(netns(host).path);
      link(netns(web), "web", 0);
      link(netns(db), "db", 1);
      runIn(netns(host), [
        "bash",
        "-c",
        "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
      ]);
      runIn(netns(host), ["nft", "-f", "-"], RULES);
      for (const port of [8080, 8082]) servers.push(serveTcp(netns(db).path, "db", port));
      directory = temporaryDirectory("fc");
    });
    afterEach(() => {
      running?.kill();
      running = undefined;
    });
    afterAll(() => {
      for (const server of servers) server[Symbol.dispose]();
      closeNetns(hostNetns);
      area.sweep();
      directory.remove();
    });

    test("names the Service, the backend and the masquerade, and both rules, within a second", async () => {
      const collector = await start();
      const before = Date.now();
      expect(await askTcp(netns(web).path, "10.96.0.1", 80)).toStartWith("db");
      await pollUntil(() => collector.records.size === 1, "a record");
      const [record] = collector.records.values();
      expect(record).toMatchObject({
        node: "node-1",
        family: 4,
        protocol: 6,
        source: { kind: "pod", name: "web", address: "10.61.0.2" },
        destination: { kind: "service", name: "db", address: "10.96.0.1", port: 80 },
        backend: { kind: "pod", name: "db", address: "10.61.1.2", port: 8080 },
        direction: "both",
        verdict: "allowed",
        decisions: [
          { point: "workload egress", verdict: "allow", rule: "shop/web egress 0" },
          { point: "workload ingress", verdict: "allow", rule: "shop/db ingress 0" },
        ],
      });
      expect((collector.seenAt.get(record?.id ?? "") ?? 0) - before).toBeLessThan(1_000);
      expect(await askTcp(netns(web).path, "10.61.1.2", 8082)).toBe("db 10.61.1.1");
      await pollUntil(() => collector.records.size === 2, "the masqueraded one");
      expect([...collector.records.values()][1]).toMatchObject({
        destination: { port: 8082 },
        seenAs: { address: "10.61.1.1" },
      });
    });

    test("no short connection is lost, and each has the counters of the kernel", async () => {
      const collector = await start();
      // Refused by the pod: each ends at once.
      inWeb("for port in {20000..20299}; do (echo > /dev/tcp/10.61.1.2/$port) 2>/dev/null; done; true");
      await pollUntil(() => collector.of("ended").length >= 300, "300 records");
      const ended = collector.of("ended");
      expect(new Set(ended.map(({ destination }) => destination.port)).size).toBe(300);
      for (const record of ended) {
        expect(record).toMatchObject({
          sent: { packets: 1, bytes: 60 },
          received: { packets: 1, bytes: 40 },
          decisions: { length: 2 },
        });
        expect(record.end).toBeGreaterThanOrEqual(record.start);
      }
      expect(collector.losses).toMatchObject({ kernelOverruns: 0, rulesUnknown: 0 });
    });

    test("both families, UDP and ICMP; a long connection is updated by looks at the table", async () => {
      const collector = await start({ limits: { lookMilliseconds: 300 } });
      inWeb("echo x > /dev/udp/fd61:1::2/5300; ping -6 -c 3 -i 0.2 fd61:1::2");
      const ping = () => [...collector.records.values()].find(({ icmp }) => icmp !== undefined);
      await pollUntil(() => ping()?.received.packets === 3, "three echoes");
      expect(ping()).toMatchObject({
        family: 6,
        protocol: 58,
        icmp: { type: 128, code: 0 },
        state: "open",
        sent: { packets: 3, bytes: 312 },
      });
      expect([...collector.records.values()].find(({ protocol }) => protocol === 17)).toMatchObject({
        family: 6,
        destination: { port: 5300, name: "db" },
      });
      expect(collector.numbers.at(-1)?.toSorted()).toEqual([EGRESS, INGRESS]);
    });

    test("denied packets are one record for each attempt, and what was suppressed is counted", async () => {
      const collector = await start();
      inWeb("for each in {1..10}; do timeout 0.1 bash -c 'echo > /dev/tcp/10.61.1.2/81' 2>/dev/null; done; true");
      await pollUntil(() => collector.of("denied").length >= 3, "denied packets");
      const denied = collector.of("denied");
      expect(denied.length).toBeLessThan(10);
      expect(denied[0]).toMatchObject({
        source: { name: "web" },
        destination: { name: "db", address: "10.61.1.2", port: 81 },
        verdict: "denied",
        decisions: [{ point: "workload ingress", verdict: "deny", rule: DENIED }],
        sent: { packets: 1, bytes: 60 },
      });
      collector.tell({ kind: "denied", counts: [[DENIED, 10]] });
      await pollUntil(
        () => (collector.losses?.deniedSuppressed ?? 0) === 10 - collector.of("denied").length,
        "the suppressed ones",
      );
    });

    test("a denied connection to a Service names it and the rule that accepted it before, if the kernel tells the connection", async () => {
      const other = runInNetns(hostNetns, () => listenToGroup(FLOW_GROUP + 10, { withConnections: true }));
      other.close();
      const collector = await start();
      inWeb("timeout 0.1 bash -c 'echo > /dev/tcp/10.96.0.1/82' 2>/dev/null || true");
      await pollUntil(() => collector.of("denied").length === 1, "the denied packet");

      const backend = { kind: "pod", name: "db", address: "10.61.1.2", port: 81 };
      const deny = { point: "workload ingress", verdict: "deny", rule: DENIED };
      const allow = { point: "workload egress", verdict: "allow", rule: "shop/web egress 0" };
      const service = { kind: "service", name: "closed", address: "10.96.0.1", port: 82 };
      const [record] = collector.of("denied");
      const { hasConnections } = other;
      expect(record).toMatchObject({
        source: { name: "web", address: "10.61.0.2" },
        ...(hasConnections ? { destination: service, backend } : { destination: backend }),
      });
      expect(record?.decisions).toEqual([...(hasConnections ? [allow] : []), deny] as FlowRecord["decisions"]);
      expect(collector.said.includes("NETLINK_GLUE_CT")).toBe(!hasConnections);
    });

    test("events that do not fit are counted, and what is open is found in the table with its rules", async () => {
      const collector = await start({ limits: { eventBufferBytes: 2_048 } });
      inWeb("for port in {30000..30199}; do echo x > /dev/udp/10.61.1.2/$port; done");
      await pollUntil(() => (collector.losses?.kernelOverruns ?? 0) > 0, "the loss");
      const found = () => [...collector.records.values()].filter(({ destination: { port = 0 } }) => port >= 30_000);
      await pollUntil(() => found().length === 200, "all of them");
      for (const record of found())
        expect(record.decisions).toMatchObject([{ rule: "shop/web egress 0" }, { rule: "shop/db ingress 0" }]);
    });

    test("a new collector knows what is in the table by its label, and keeps the IDs of the records that were open", async () => {
      const first = await start({ limits: { lookMilliseconds: 200 } });
      inWeb("echo x > /dev/udp/10.61.1.2/31000");
      const wanted = (collector: Running) =>
        [...collector.records.values()].find(({ destination: { port } }) => port === 31_000);
      await pollUntil(() => wanted(first) !== undefined, "the record");
      const record = wanted(first);
      expect(await first.end()).toBe(0);
      expect(first.isClosed).toBe(true);
      // Somewhere else since: it has ended meanwhile.
      const gone = { ...record, id: "node-1-old", source: { ...record?.source, port: 1 } };
      const second = await start({ open: [record, gone] });
      await pollUntil(() => second.records.has("node-1-old") && wanted(second) !== undefined, "the records");
      expect(second.records.get(record?.id ?? "")).toMatchObject({
        state: "open",
        decisions: [{ rule: "shop/web egress 0" }, { rule: "shop/db ingress 0" }],
      });
      expect(second.records.get("node-1-old")).toMatchObject({ state: "ended" });
    });

    // Without `nf_conntrack_events=1` it fails only if nothing on the machine listens meanwhile, in any namespace.
    test("a connection that begins between two collectors is told to have ended, with all that was sent", async () => {
      await (await start()).end();
      runInNetns(hostNetns, () => writeSysctl("net/netfilter/nf_conntrack_udp_timeout", "1"));
      inWeb("echo x > /dev/udp/10.61.1.2/32000");
      const collector = await start();
      using table = openConntrackTable(netns(host).path);
      const ended = () => collector.of("ended").find(({ destination: { port } }) => port === 32_000);
      await pollUntil(() => {
        table.list();
        return ended() !== undefined;
      }, "the end");
      expect(ended()).toMatchObject({ sent: { packets: 1, bytes: 30 } });
    });

    test("accounting is put back when flows are switched off, not when the collector ends", async () => {
      const path = accountingPath(directory.path);
      const value = (name: string) => runInNetns(hostNetns, () => readSysctl(`net/netfilter/nf_conntrack_${name}`));
      runInNetns(hostNetns, () => restoreConnectionAccounting(path));
      runInNetns(hostNetns, () => writeSysctl("net/netfilter/nf_conntrack_timestamp", "1"));
      const values = () => ["acct", "timestamp", "events"].map(value);
      expect(values()).toEqual(["0", "1", "2"]);
      const collector = await start();
      expect(values()).toEqual(["1", "1", "1"]);
      await collector.end();
      await (await start()).end();
      expect(value("acct")).toBe("1");
      runInNetns(hostNetns, () => restoreConnectionAccounting(path));
      expect(values()).toEqual(["0", "1", "2"]);
      expect(existsSync(path)).toBe(false);
    });
  },
);

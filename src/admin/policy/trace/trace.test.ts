import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import { address } from "../../../../test/support/ipam.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import type { GroupListener, GroupPacket } from "../../../linux/log-group.ts";
import type { Expression } from "../../../linux/nftables/expression.ts";
import type { TraceEvent } from "../../../linux/nftables/trace.ts";
import { type HostEndpoint, hostEndpoint } from "../../../model/host-endpoint.ts";
import { ENDPOINT, HOST_ENDPOINT, NETWORK_POLICY } from "../../../model/kinds.ts";
import { workloadEndpoint } from "../../../model/workload-endpoint.ts";
import { verdictElement } from "../../../policy/render/verdict-element.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";
import { Interruption } from "../../main/interruption.ts";
import { interfacesOfChains, type PolicyCounts } from "../chain-interfaces.ts";

const MARKING = { family: "inet", name: "marking" } as const;
const IPV4 = Uint8Array.fromHex("4500003c000040004006000a0a0000050a000006");

/** A tracer that reports these events in its first round. */
function tracing(events: readonly TraceEvent[]) {
  const opened: (readonly (readonly Expression[])[])[] = [];
  let isClosed = false;
  let left = events;
  const openTracer: AdminSurroundings["openTracer"] = async (alternatives) => {
    opened.push(alternatives);
    return {
      table: MARKING,
      read() {
        const now = left;
        left = [];
        return { events: now, hasLost: false };
      },
      rulesOf: (_, chain) => [
        { chain, handle: 9n, expressions: [], comment: "shop/db ingress 0" },
        { chain, handle: 8n, expressions: [{ kind: "ct", key: "state", to: 0 }] },
      ],
      close: () => {
        isClosed = true;
      },
    };
  };
  const run = (words: string, more: AdminSurroundings = {}) => runInside(words.split(" "), { openTracer, ...more });
  return { run, opened, isClosed: () => isClosed };
}

const POLICY = { family: "inet", name: identity.policyTable } as const;
const DROPPED_AS = (packet: number): readonly TraceEvent[] => [
  { packet, kind: "rule", table: MARKING, chain: "prerouting", handle: 4n, networkHeader: IPV4 },
  { packet, kind: "rule", table: POLICY, chain: "pi_x", handle: 9n, verdict: "drop" },
];
const DROPPED = DROPPED_AS(1);

const linesOf = (stdout: string) =>
  stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

/** A datastore with the pod "shop/web" at 10.0.0.5, by the interface vend1. */
async function named() {
  const store = openMemory();
  const metadata = { namespace: "shop", name: "here-k8s-web-eth0" };
  const spec = {
    ...{ orchestrator: "k8s", node: "here", pod: "web", endpoint: "eth0", containerID: "c" },
    ...{ ipNetworks: ["10.0.0.5/32"], interfaceName: "vend1" },
  };
  const value = workloadEndpoint.write(workloadEndpoint.make(metadata, spec));
  await store.commit([{ kind: "put", key: ENDPOINT.key(metadata), value }]);
  return store;
}

describe("policy trace", () => {
  test("prints the packet and the rule that dropped it, and removes its table", async () => {
    const { run, isClosed } = tracing(DROPPED);
    const { code, stdout } = await run("policy trace --to 10.0.0.6 --timeout 1");
    expect([code, stdout]).toEqual([
      EXIT_OK,
      '03:04:05.000 TCP 10.0.0.5 -> 10.0.0.6: dropped\n  by NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])\n',
    ]);
    expect(isClosed()).toBe(true);
  });

  test("fails if it sees nothing, naming what it waited for", async () => {
    const { run } = tracing([]);
    const { code, stderr } = await run("policy trace --from 10.0.0.5 --to 10.0.0.6 --port 80 --timeout 1");
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("No packet was seen within 1 s (IPv4 TCP from 10.0.0.5 to 10.0.0.6 port 80)");
  });

  test("matches only the family of an address, and a list of conditions for each family of none", async () => {
    const { run, opened } = tracing([]);
    await run("policy trace --to fd00::1 --protocol icmp --timeout 1");
    await run("policy trace --to 10.0.0.1 --timeout 1");
    expect(opened.map((alternatives) => alternatives.length)).toEqual([1, 1]);
  });

  test("follows each address of a container in two networks", async () => {
    const store = openMemory();
    for (const [endpoint, ip] of [
      ["eth0", "10.0.0.7/32"],
      ["eth1", "10.0.0.8/32"],
    ] as const) {
      const metadata = { namespace: "default", name: `here-cni-c2-${endpoint}` };
      const ids = { orchestrator: "cni", node: "here", workload: "two", containerID: "c2", endpoint };
      const value = workloadEndpoint.write(workloadEndpoint.make(metadata, { ...ids, ipNetworks: [ip] }));
      await store.commit([{ kind: "put", key: ENDPOINT.key(metadata), value }]);
    }
    const { run, opened } = tracing([]);

    const { stderr } = await run("policy trace --to two --port 80 --timeout 1", { store });

    expect(opened.map((alternatives) => alternatives.length)).toEqual([2]);
    expect(stderr).toContain("(IPv4 TCP to 10.0.0.7 port 80; IPv4 TCP to 10.0.0.8 port 80)");
  });

  const PASSED = (packet: number, comment: "rule" | "ct"): readonly TraceEvent[] => [
    { packet, kind: "rule", table: MARKING, chain: "prerouting", handle: 4n, networkHeader: IPV4 },
    { packet, kind: "rule", table: POLICY, chain: "pi_x", handle: comment === "rule" ? 9n : 8n, verdict: "accept" },
  ];

  test("an allowed connection is shown once: its later packets do not use up --count", async () => {
    const { run } = tracing([...PASSED(1, "rule"), ...PASSED(2, "ct"), ...PASSED(3, "ct"), ...DROPPED_AS(4)]);
    const { code, stdout, stderr } = await run("policy trace --to 10.0.0.6 --timeout 1 --count 3 -o json");
    expect([code, ...linesOf(stdout).map(({ outcome }) => outcome)]).toEqual([EXIT_OK, "dropped", "passed"]);
    expect(stderr).toContain("Not shown: 2 later packets of the connections that passed");
  });

  test("tells the time in JSON, and both ends with their names", async () => {
    const { stdout } = await tracing(DROPPED).run("policy trace --to 10.0.0.6 --timeout 1 -o json", {
      store: await named(),
    });
    expect(linesOf(stdout)[0]).toMatchObject({
      time: "2026-01-02T03:04:05.000Z",
      packet: "TCP 10.0.0.5 -> 10.0.0.6",
      source: { address: "10.0.0.5", name: "shop/web" },
      destination: { address: "10.0.0.6" },
    });
  });

  test("shows names, and what the datastore cannot tell is not needed", async () => {
    const withNames = await tracing(DROPPED).run("policy trace --to 10.0.0.6 --timeout 1", { store: await named() });
    expect(withNames.stdout).toContain("TCP 10.0.0.5 (shop/web) -> 10.0.0.6: dropped");
    const openDatastore = () => Promise.reject(new Error("no answer"));
    const without = await tracing(DROPPED).run("policy trace --to 10.0.0.6 --timeout 1", { openDatastore });
    expect([without.code, without.stderr]).toEqual([
      EXIT_OK,
      expect.stringContaining("names are not shown: no answer"),
    ]);
    expect((await tracing([]).run("policy trace --to shop/web", { openDatastore })).code).toBe(EXIT_FAILED);
  });

  test("Ctrl-C ends it without an error, also if it saw nothing", async () => {
    for (const [events, words] of [
      [DROPPED, "policy trace --to 10.0.0.6 --count 5"],
      [[], "policy trace --to 10.0.0.6"],
    ] as const) {
      const user = new AbortController();
      const { run, isClosed } = tracing(events);
      let rounds = 0;
      const wait = async () => {
        rounds += 1;
        if (rounds === 3) user.abort(new Interruption("SIGINT"));
      };
      const { code, stderr } = await run(words, { wait, signal: user.signal });
      expect([code, stderr]).toEqual([EXIT_OK, expect.not.stringContaining("error")]);
      expect(isClosed()).toBe(true);
    }
  });

  test.each([
    ["policy trace", '"--from", "--to" or "--dropped" is missing'],
    ["policy trace --from 10.0.0.1 --to fd00::1", "no addresses of the same IP version"],
    ["policy trace --to 10.0.0.1 --protocol icmp --port 80", "--protocol tcp, udp or sctp"],
    ["policy trace --to 10.0.0.1 --port http", '"--port" is "http"'],
    ["policy trace --to 10.0.0.1 --timeout 0", '"--timeout" is "0"'],
  ])("%s is refused", async (words, message) => {
    const { code, stderr } = await tracing([]).run(words);
    expect([code, stderr]).toEqual([EXIT_USAGE, expect.stringContaining(message)]);
  });
});

describe("policy trace --dropped", () => {
  const UDP = Uint8Array.fromHex("4500002000004000401100000a000005c00002630035138800000000");
  const drop = (prefix: string, bytes = UDP): GroupPacket => ({ prefix, bytes });

  /** Reports these packets, one list in each round. */
  const dropping = (...rounds: readonly (readonly GroupPacket[])[]) => droppingWith({}, ...rounds);
  const droppingWith = (more: { readonly hasLost?: boolean }, ...rounds: readonly (readonly GroupPacket[])[]) => {
    const calls: string[] = [];
    const left = [...rounds];
    const log: GroupListener = {
      read: () => ({ packets: left.shift() ?? [], hasLost: more.hasLost ?? false }),
      hasConnections: false,
      pause: () => void calls.push("pause"),
      resume: () => void calls.push("resume"),
      close: () => void calls.push("close"),
    };
    const run = (words: string, surroundings: AdminSurroundings = {}) =>
      runInside(["policy", "trace", "--dropped", ...words.split(" ").filter(Boolean)], {
        openDropLog: async () => log,
        ...surroundings,
      });
    return { run, calls };
  };

  test("shows what policy drops, with time, names, port and the rule or end", async () => {
    const { run, calls } = dropping([
      drop("shop/web egress 1"),
      drop("tier default egress default"),
      drop("state invalid"),
    ]);
    const { code, stdout } = await run("--timeout 1", { store: await named() });
    expect([code, stdout]).toEqual([
      EXIT_OK,
      [
        "03:04:05.000 UDP 10.0.0.5:53 (shop/web) -> 192.0.2.99:5000: dropped",
        '  by NetworkPolicy "shop/web", egress rule 2 (spec.egress[1])',
        "03:04:05.000 UDP 10.0.0.5:53 (shop/web) -> 192.0.2.99:5000: dropped",
        '  by the end of tier "default": no egress rule of its policies matches',
        "03:04:05.000 UDP 10.0.0.5:53 (shop/web) -> 192.0.2.99:5000: dropped",
        "  by connection tracking: it belongs to no connection (state invalid)\n",
      ].join("\n"),
    ]);
    expect(calls.at(-1)).toBe("close");
  });

  test("stops at --count, and shows only the wanted protocol and port", async () => {
    const two = [drop("a ingress 0"), drop("b ingress 0")];
    expect(linesOf((await dropping(two).run("--count 1 -o json")).stdout)).toHaveLength(1);
    const shown = async (words: string) => (await dropping(two).run(`--timeout 1 -o json ${words}`)).code;
    expect(await shown("--protocol udp --port 5000")).toBe(EXIT_OK);
    expect(await shown("--port 5000")).toBe(EXIT_OK);
    expect(await shown("--protocol tcp --port 5000")).toBe(EXIT_FAILED);
    expect(await shown("--protocol udp --port 53")).toBe(EXIT_FAILED);
    expect(await shown("--ip-version 6")).toBe(EXIT_FAILED);
  });

  test("asks the kernel for no more in a second with too many", async () => {
    const flood = Array.from({ length: 101 }, () => drop("a ingress 0"));
    const { run, calls } = dropping(flood);
    const { stderr } = await run("--timeout 2");
    expect(stderr.split("\n").filter((line) => line.startsWith("Warning: there are more packets"))).toHaveLength(1);
    expect(calls).toEqual(["pause", "resume", "close"]);
  });

  const TO_PORT_53 = UDP.map((byte, index) => (index === 22 ? 0 : index === 23 ? 53 : byte));
  const others = (length: number) => Array.from({ length }, () => drop("a ingress 0"));

  test("finds the wanted packet among many others, which do not use up what is shown in a second", async () => {
    const { run, calls } = dropping([...others(500), drop("b ingress 0", TO_PORT_53)]);
    const { code, stdout, stderr } = await run("--protocol udp --port 53 --timeout 1 -o json");
    expect([code, linesOf(stdout)[0]?.destination?.port]).toEqual([EXIT_OK, 53]);
    expect([stderr, calls]).toEqual([expect.not.stringContaining("Warning"), ["close"]]);
  });

  test("does not say that nothing was dropped if it could not look at all packets", async () => {
    for (const { run, calls } of [dropping(others(20_000)), droppingWith({ hasLost: true })]) {
      const { code, stderr } = await run("--protocol udp --port 53 --timeout 1");
      expect([code, stderr]).toEqual([EXIT_FAILED, expect.stringContaining("Warning: there are more packets")]);
      expect(stderr).not.toContain("no packet");
      expect(stderr).toContain("not all dropped packets were looked at");
      expect(calls).toContain("pause");
    }
  });

  test("runs until Ctrl-C, which is no error", async () => {
    const user = new AbortController();
    let rounds = 0;
    const wait = async () => {
      rounds += 1;
      if (rounds === 5_000) user.abort(new Interruption("SIGINT"));
    };
    const { run, calls } = dropping();
    const { code, stderr } = await run("", { wait, signal: user.signal });
    expect([code, stderr, calls.at(-1)]).toEqual([EXIT_OK, expect.stringContaining("until Ctrl-C"), "close"]);
  });

  test("with an end it shows the dropped packets of the flow, whoever drops them", async () => {
    const { run } = tracing([...DROPPED_AS(1)]);
    expect((await run("policy trace --dropped --to 10.0.0.6 --timeout 1")).stdout).toContain(": dropped");
    const { code, stderr } = await tracing([]).run("policy trace --dropped --to 10.0.0.6 --timeout 1");
    expect([code, stderr]).toEqual([EXIT_FAILED, expect.stringContaining("No packet was dropped within 1 s")]);
  });

  test("fails on a host without the policy table", async () => {
    const { code, stderr } = await runInside(["policy", "trace", "--dropped"]);
    expect([code, stderr]).toEqual([EXIT_FAILED, expect.stringContaining("This host has no policy table")]);
  });
});

describe("policy counters", () => {
  const count = (comment: string, verdict: "accept" | "drop" | undefined, packets: number, chain = "c") => {
    return { chain, comment, ...(verdict === undefined ? {} : { verdict }), packets, bytes: packets * 60 };
  };
  const counts = [
    count("tier default ingress default", "drop", 2, "one"),
    count("tier default ingress default", "drop", 7, "other"),
    count("IPIP of a workload", "drop", 0),
    count("shop/db ingress 10", "drop", 0),
    count("shop/db ingress 1", undefined, 6),
    count("shop/db ingress 2", "accept", 1, "one"),
    count("shop/db ingress 2", "accept", 3, "other"),
    count("global egress 0", "drop", 5),
  ];
  const policyCounts: PolicyCounts = {
    counts,
    interfacesOf: new Map([
      ["one", ["vend1"]],
      ["other", ["vend2", "vend3", "vend4", "vend5"]],
    ]),
  };
  const END = "end of tier default";
  const rowsOf = async (words: string) => {
    const { code, stdout } = await runInside(words.split(" "), {
      ...{ policyCounts, store: await named(), hostName: "here" },
    });
    return [
      code,
      ...stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split(/ {2,}/)),
    ];
  };

  test("lists the rules of policies in order, then what else was dropped and for whom, both families together", async () => {
    expect(await rowsOf("policy counters")).toEqual([
      EXIT_OK,
      ["POLICY", "PACKETS", "ACTION", "DIRECTION", "RULE", "BYTES", "ENDPOINTS"],
      ["global", "5", "Deny", "egress", "1", "300"],
      ["shop/db", "6", "Log", "ingress", "2", "360"],
      ["shop/db", "4", "Allow", "ingress", "3", "240", "interface vend2, interface vend3, interface vend4 and 2 more"],
      ["shop/db", "0", "Deny", "ingress", "11", "0"],
      [END, "7", "Deny", "ingress", "420", "interface vend2, interface vend3, interface vend4 and 1 more"],
      [END, "2", "Deny", "ingress", "120", "shop/web"],
    ]);
  });

  test("names the host endpoints of this node, also one that expects an address of the interface", async () => {
    const store = await named();
    const hosts: Readonly<Record<string, HostEndpoint["spec"]>> = {
      "a-other": { node: "other", interfaceName: "eth0" },
      "b-other": { node: "other", interfaceName: "eth1" },
      "by-address": { node: "here", expectedIPs: ["192.0.2.7"] },
      "by-name": { node: "here", interfaceName: "eth0" },
      rest: { node: "here", interfaceName: "*" },
    };
    for (const [name, spec] of Object.entries(hosts)) {
      const value = hostEndpoint.write(hostEndpoint.make({ name }, spec));
      await store.commit([{ kind: "put", key: HOST_ENDPOINT.key({ name }), value }]);
    }
    const interfaces = ["eth0", "eth1", "eth2", "*"];
    const { stdout } = await runInside(["policy", "counters", "-o", "json"], {
      ...{ store, hostName: "here" },
      hostAddresses: [
        {
          address: address("192.0.2.7"),
          length: 24,
          link: { name: "eth2", mtu: 1_500, defaultRoutes: [] },
        },
      ],
      policyCounts: {
        counts: interfaces.map((name) => count(`${name} ingress 0`, "drop", 1, name)),
        interfacesOf: new Map(interfaces.map((name) => [name, [name]])),
      },
    });
    const rows: readonly { policy: string; endpoints: readonly string[] }[] = JSON.parse(stdout).rules;
    expect(Object.fromEntries(rows.map(({ policy, endpoints }) => [policy, endpoints.join()]))).toEqual({
      "*": "hostendpoint/rest",
      eth0: "hostendpoint/by-name",
      eth1: "interface eth1",
      eth2: "hostendpoint/by-address",
    });
  });

  test("names the containers of a host whose name has capitals, also if its network config cannot be used", async () => {
    const { stdout } = await runInside(["policy", "counters", "-o", "json"], {
      ...{ policyCounts, store: await named(), hostName: "Here" },
      env: { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path },
      files: { "/etc/cni/net.d/10-net.conf": JSON.stringify({ name: "pods", type: identity.product, ipam: 1 }) },
    });

    expect(stdout).toContain('"shop/web"');
  });

  test("shows one policy, only what was dropped, or also what has decided nothing", async () => {
    expect((await rowsOf("policy counters shop/db")).slice(2)).toHaveLength(3);
    expect((await rowsOf("policy counters --dropped")).slice(2)).toHaveLength(3);
    expect((await rowsOf("policy counters --all")).slice(2)).toContainEqual(["IPIP of a workload", "0", "Deny", "0"]);
  });

  test.each([80, 40])("on a terminal with %i columns the packets are shown, and what decided", async (width) => {
    const ends = {
      counts: [count("tier default ingress default", "drop", 2), count("tier default egress default", "drop", 7)],
      interfacesOf: new Map(),
    };
    const { stdout } = await runInside(["policy", "counters"], { policyCounts: ends, terminalWidth: width });

    expect(stdout).toContain("end of tier default   2         Deny");
    expect(stdout).toContain("end of tier default   7         Deny");
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(width);
    if (width === 80) expect(stdout).toMatch(/7 +Deny +egress/);
  });

  test("as JSON the end of a tier has its tier and direction", async () => {
    const { stdout } = await runInside(["policy", "counters", "-o", "json"], { policyCounts });

    expect(JSON.parse(stdout).rules).toContainEqual({
      ...{ tier: "default", direction: "ingress", action: "Deny", packets: 2, bytes: 120 },
      ...{ decidedBy: 'the end of tier "default": no ingress rule of its policies matches' },
      endpoints: ["interface vend1"],
    });
  });

  test("shows the rows of a container, and says which counts it shares", async () => {
    const rows = [
      ["shop/db", "4", "Allow", "ingress", "3", "240", "interface vend2, interface vend3, interface vend4 and 2 more"],
      [END, "2", "Deny", "ingress", "120", "shop/web"],
    ];
    for (const words of ["policy counters shop/web", "policy counters --for shop/web"])
      expect((await rowsOf(words)).slice(2)).toEqual(rows);
    const run = async (...words: readonly string[]) =>
      runInside(["policy", "counters", ...words], { policyCounts, store: await named(), hostName: "here" });
    expect((await run("shop/web")).stderr).toContain("counts packets of all endpoints in its row");
    expect((await run("shop/web", "--dropped")).stderr).toBe("");
    expect((await run("shop/db")).stderr).toBe("");
    const unknown = await run("--for", "shop/nobody");
    expect([unknown.code, unknown.stderr]).toEqual([EXIT_FAILED, expect.stringContaining('"shop/nobody"')]);
  });

  describe("of a policy", () => {
    const rules: PolicyCounts = {
      counts: [
        count("default/pages ingress 0", "accept", 3),
        count("both ingress 0", "accept", 1),
        count("default/both ingress 0", "accept", 1),
        count("policy/pages ingress 0", "accept", 1),
      ],
      interfacesOf: new Map([["one", ["vend1"]]]),
    };
    const run = async (word: string, policyCounts = rules) => {
      const store = await named();
      for (const name of ["pages", "elsewhere"]) {
        const metadata = { namespace: "default", name };
        const value = NETWORK_POLICY.codec.write(NETWORK_POLICY.codec.make(metadata, { tier: "default" }));
        await store.commit([{ kind: "put", key: NETWORK_POLICY.key(metadata), value }]);
      }
      return runInside(["policy", "counters", word, "-o", "json"], { policyCounts, store, hostName: "here" });
    };

    test.each([
      ["pages", "default/pages"],
      ["default/pages", "default/pages"],
      ["np/pages", "default/pages"],
      ["networkpolicy/default/pages", "default/pages"],
      ["both", "both"],
      ["gnp/both", "both"],
      ["np/both", "default/both"],
      ["policy/pages", "policy/pages"],
    ])("%s is %s", async (word, policy) => {
      const { code, stdout, stderr } = await run(word);

      expect({ code, stderr }).toEqual({ code: EXIT_OK, stderr: "" });
      expect(JSON.parse(stdout).rules.map((row: { policy: string }) => row.policy)).toEqual([policy]);
    });

    test("its kind may be written before its name, unless a namespace is called so", async () => {
      const { code } = await run("policy/pages", { ...rules, counts: rules.counts.slice(0, 1) });

      expect(code).toBe(EXIT_OK);
    });

    test("that selects nobody here is not said to be missing", async () => {
      const { code, stderr } = await run("elsewhere");

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toBe(
        'No rule of policy "default/elsewhere" is in the kernel: it selects no workload of this node\n',
      );
    });

    test.each([
      ["pagse", 'did you mean "pages"?'],
      ["default/pagse", 'did you mean "default/pages"?'],
      ["shop/wbe", 'did you mean "shop/web"?'],
    ])("that does not exist is missing, with the nearest name: %s", async (word, hint) => {
      const { code, stderr } = await run(word);

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain(`Cannot find policy "${word}": it does not exist, nor has a container`);
      expect(stderr).toContain(hint);
    });

    test("may exist if the datastore cannot be read", async () => {
      const openDatastore = () => Promise.reject(new PluginError("datastore-unavailable", "down"));
      const { code, stderr } = await runInside(["policy", "counters", "any"], { policyCounts: rules, openDatastore });

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain("it selects no workload of this node, or does not exist");
    });
  });

  test("fails for a policy without rules here, and for a host without the table", async () => {
    expect((await runInside(["policy", "counters", "shop/web"], { policyCounts })).code).toBe(EXIT_FAILED);
    const without = await runInside(["policy", "counters"]);
    expect([without.code, without.stderr]).toEqual([
      EXIT_FAILED,
      expect.stringContaining(`${identity.nodeAgent} does not run`),
    ]);
  });
});

describe("interfacesOfChains()", () => {
  const goto = (chain: string, ...targets: readonly string[]) =>
    targets.map((target) => ({
      chain,
      expressions: [{ kind: "verdict" as const, verdict: { kind: "goto" as const, chain: target } }],
    }));

  test("follows maps and rules from an interface to every chain that its packets can reach", () => {
    const elements = [
      verdictElement("vend1", "first"),
      verdictElement("vend2", "shared"),
      verdictElement("eth0", "host"),
    ];
    const rules = [...goto("first", "policy", "shared"), ...goto("shared", "ending"), ...goto("host_input", "others")];
    expect(interfacesOfChains(elements, rules)).toEqual(
      new Map([
        ["first", ["vend1"]],
        ["policy", ["vend1"]],
        ["shared", ["vend1", "vend2"]],
        ["ending", ["vend1", "vend2"]],
        ["host", ["eth0"]],
        ["others", ["*"]],
      ]),
    );
  });
});

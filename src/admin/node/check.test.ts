import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { seed } from "../../../test/support/ipam.ts";
import type { Change, Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { networkProfileSpec } from "../../model/network-profile.ts";
import type { AgentState, HostFacts, PodLinkFacts } from "../host/facts.ts";
import { agentFindings, NO_DEMAND, type PolicyDemand } from "./agent-findings.ts";
import { findingsOf } from "./check.ts";
import type { SwitchFacts } from "./own-table-findings.ts";

const link: PodLinkFacts = {
  name: "vend1",
  families: [4],
  reversePath: 1,
  servesLoopback: false,
  allowsSources: false,
  allowedFamilies: [],
};
/** Its pod may send from other prefixes. */
const open: PodLinkFacts = { ...link, name: "vend2", reversePath: 0, allowsSources: true, allowedFamilies: [4, 6] };
const well: HostFacts = {
  forwarding: { ipv4: true, ipv6: true },
  advertisedUplinks: [],
  hasLegacyFilter: false,
  droppingChains: [],
  partlyDroppingChains: [],
  tables: { nat: "intact", guard: "intact", hostPorts: "intact", floating: "intact" },
  podLinks: [link],
  knowsClusterSources: true,
  agent: "running",
  hasPolicyTable: true,
};
const docker = { table: { family: "ip", name: "filter" }, chain: "FORWARD" } as const;
const custom = { table: { family: "inet", name: "site" }, chain: "forward" } as const;

describe("node check", () => {
  test("succeeds on a host that forwards", async () => {
    const { code, stdout } = await runInside(["node", "check"], { hostFacts: well });
    expect(code).toBe(0);
    expect(stdout.split("\n").filter((line) => line !== "" && !line.startsWith("ok"))).toEqual([]);
  });

  test("fails on a chain that drops, and prints the commands to run", async () => {
    const hostFacts = { ...well, droppingChains: [docker, custom] };
    const { code, stdout } = await runInside(["node", "check"], { hostFacts });
    expect(code).toBe(1);
    expect(stdout).toContain('chain "FORWARD" of table ip "filter"');
    expect(stdout).toContain("run: iptables -I FORWARD -i vend+ -j ACCEPT && iptables -I FORWARD -o vend+ -j ACCEPT\n");
    expect(stdout).toContain(`run: nft insert rule inet site forward iifname '"vend*"' accept && `);
  });

  test("only warns of what does not stop packets by itself", async () => {
    const hostFacts = { ...well, hasLegacyFilter: true };
    const states = findingsOf(hostFacts).map(({ state }) => state);
    expect(states).toEqual(["ok", "ok", "ok", "warning", "ok", "ok", "ok", "ok", "ok"]);
    expect((await runInside(["node", "check"], { hostFacts })).code).toBe(0);
  });

  test("warns of a default route that the host loses when it forwards IPv6, and names the setting", async () => {
    const { code, stdout } = await runInside(["node", "check"], {
      hostFacts: { ...well, advertisedUplinks: ["eth0.5"] },
    });
    expect(code).toBe(0);
    expect(stdout).toContain("the default route by eth0.5 is from router advertisements");
    expect(stdout).toContain("run: sysctl -w net.ipv6.conf.eth0/5.accept_ra=2 ");
  });

  test("warns of a chain of another program that drops some packets, and names the command that shows it", async () => {
    const hostFacts = { ...well, partlyDroppingChains: [{ ...docker, rules: 2 }] };
    const { code, stdout } = await runInside(["node", "check"], { hostFacts });
    expect(code).toBe(0);
    expect(stdout).toContain('2 rules of chain "FORWARD" of table ip "filter"');
    expect(stdout).toContain("run: nft list table ip filter\n");
  });

  test("prints JSON for scripts", async () => {
    const { stdout } = await runInside(["node", "check", "-o", "json"], { hostFacts: well });
    expect(JSON.parse(stdout)).toEqual({
      ok: true,
      findings: [
        ...findingsOf(well),
        ...agentFindings(well, { hasNetwork: false, isPolicyRequired: false, demand: NO_DEMAND }),
      ],
    });
  });

  test.each([
    ["off without such containers", { ipv4: true, ipv6: false }, [link], "ok", "off, and not needed"],
    ["off without containers", { ipv4: true, ipv6: false }, [], "ok", "off, and not needed"],
    ["off with one", { ipv4: true, ipv6: false }, [{ ...link, families: [6] as const }], "failed", "of 1 container"],
    ["on", { ipv4: true, ipv6: true }, [link], "ok", "on"],
  ] as const)("IPv6 forwarding is %s", (_, forwarding, podLinks, state, message) => {
    const found = findingsOf({ ...well, forwarding, podLinks }).find(({ check }) => check === "IPv6 forwarding");

    expect(found).toMatchObject({ state, message: expect.stringContaining(message) });
  });

  type Demand = PolicyDemand | { readonly unknown: string };
  const db: PolicyDemand = { ...NO_DEMAND, workloads: ["db"] };
  const closed: PolicyDemand = { ...NO_DEMAND, closedByProfiles: ["db", "web"], profiles: ["pods"] };
  const POLICY_CASES: readonly (readonly [AgentState, boolean, boolean, Demand, string, string, string])[] = [
    ["running", true, true, NO_DEMAND, "ok", "ok", "in place"],
    ["running", false, false, NO_DEMAND, "ok", "ok", "nothing to enforce"],
    ["running", false, true, NO_DEMAND, "ok", "failed", "policy.type"],
    ["running", false, false, db, "ok", "failed", "policies select 1 container of this host (db), and nothing"],
    ["stopped", true, false, db, "failed", "warning", "do not follow changes"],
    ["stopped", false, false, db, "failed", "failed", "nothing enforces them"],
    ["stopped", false, false, NO_DEMAND, "failed", "ok", "nothing to enforce"],
    ["not used", false, false, NO_DEMAND, "ok", "ok", "nothing to enforce"],
    ["not used", false, false, db, "ok", "failed", "nothing enforces them"],
    ["not used", true, false, db, "failed", "warning", "do not follow changes"],
    ["not used", false, false, { ...NO_DEMAND, hostEndpoints: ["eth0"] }, "ok", "failed", 'host endpoint "eth0"'],
    ["running", false, false, closed, "ok", "failed", "profile pods closes 2 containers of this host (db, web), and"],
    ["not used", true, false, closed, "failed", "warning", "do not follow changes"],
    ["not used", false, false, { unknown: "etcd is down" }, "ok", "warning", "unknown: etcd is down"],
  ];
  test.each(POLICY_CASES)(
    "agent %s, policy table %p, policy.type %p, policies %j: the agent is %s, policy is %s",
    (agent, hasPolicyTable, isPolicyRequired, demand, ofAgent, ofPolicy, message) => {
      const found = agentFindings({ ...well, agent, hasPolicyTable }, { hasNetwork: true, isPolicyRequired, demand });

      expect(found.map(({ state }) => `${state}`)).toEqual([ofAgent, ofPolicy]);
      expect(found[1]?.message).toContain(message);
      for (const { state, remedy } of found) expect(remedy === undefined).toBe(state === "ok");
    },
  );

  test.each([
    ["a network", true, [], "failed"],
    ["containers", false, [link], "failed"],
    ["neither", false, [], "ok"],
  ] as const)("a stopped agent matters on a host with %s", (_, hasNetwork, podLinks, state) => {
    const facts = { agent: "stopped", hasPolicyTable: false, podLinks } as const;

    expect(agentFindings(facts, { hasNetwork, isPolicyRequired: false, demand: NO_DEMAND })[0]?.state).toBe(state);
  });

  test("says what to start, with systemd or in a cluster", () => {
    const remedies = (more: object, agent: AgentState = "stopped") =>
      agentFindings(
        { ...well, agent, hasPolicyTable: false },
        { hasNetwork: true, isPolicyRequired: false, demand: db, ...more },
      ).map(({ remedy }) => remedy);

    const start = `systemctl enable --now ${identity.nodeAgent}`;
    expect(remedies({})).toEqual([start, start]);
    expect(remedies({}, "running")).toEqual([undefined, `journalctl --unit ${identity.nodeAgent}`]);
    expect(remedies({ podOfNode: "n1" })[0]).toContain("--field-selector spec.nodeName=n1");
  });

  test.each([80, 40])("fits a terminal of %d columns, except for commands", async (terminalWidth) => {
    const hostFacts = { ...well, agent: "stopped" as const, podLinks: [link] };
    const run = (more: object) => runInside(["node", "check"], { hostFacts, ...more });
    const { stdout } = await run({ terminalWidth });
    const words = (text: string) => text.split(/\s+/).join(" ");

    for (const line of stdout.split("\n").filter((each) => !each.includes("run: "))) {
      expect(line.length).toBeLessThanOrEqual(terminalWidth);
    }
    expect(words(stdout)).toBe(words((await run({})).stdout));
  });

  describe("reads the policies of the datastore", () => {
    const files = {
      "/etc/cni/net.d/10-net.conf": JSON.stringify({
        ...{ name: "pods", cniVersion: "1.0.0", type: identity.product, ipam: { type: identity.ipamType } },
        ...{ datastore_type: "embedded", datastore_path: import.meta.path },
      }),
    };
    const put = (plural: string, kind: string, name: string, spec: object, more: object = {}) => ({
      kind: "put" as const,
      key: resourceKey(plural, { name, ...more }),
      value: JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...more }, spec }),
    });
    const endpoint = (workload: string, node: string, role: string) =>
      put(
        "workloadendpoints",
        "WorkloadEndpoint",
        `${node}-cni-${workload}1-eth0`,
        { orchestrator: "cni", node, workload, containerID: `${workload}1`, endpoint: "eth0", profiles: ["pods"] },
        { namespace: "default", labels: { role, [`${identity.labelPrefix}namespace`]: "default" } },
      );
    const policy = (selector: string) =>
      put("networkpolicies", "NetworkPolicy", "only", { selector, types: ["Ingress"] }, { namespace: "default" });
    const run = async (facts: Partial<HostFacts>, ...changes: readonly Change[]) => {
      const store = openMemory();
      const profile = put("profiles", "Profile", "pods", networkProfileSpec("pods"));
      await seed(store, profile);
      await seed(store, endpoint("db", "here", "db"), endpoint("web", "there", "web"), ...changes);
      const hostFacts = { ...well, agent: "not used" as const, hasPolicyTable: false, ...facts };
      return runInside(["node", "check"], { hostFacts, store, files, hostName: "here" });
    };

    test("one that selects a container of this host is not enforced without a table", async () => {
      const { code, stdout } = await run({}, policy("role == 'db'"));

      expect(code).toBe(1);
      expect(stdout).toMatch(/^failed +network policy +policies select 1 container of this host \(db\)/m);
    });

    test.each([
      ["of another host", policy("role == 'web'")],
      ["of nobody", policy("rol == 'db'")],
    ])("one that selects containers %s is no failure", async (_, change) => {
      expect((await run({}, change)).code).toBe(0);
    });

    test("a profile that somebody edited closes containers as soon as there is a policy", async () => {
      const edited = put("profiles", "Profile", "pods", networkProfileSpec("pods"), { labels: { closed: "yes" } });

      expect((await run({}, edited)).code).toBe(0);
      const { code, stdout } = await run({}, edited, policy("rol == 'db'"));
      expect(code).toBe(1);
      expect(stdout).toMatch(
        /^failed +network policy +profile pods closes 1 container of this host \(db\), and nothing/m,
      );
    });

    test("a host endpoint of this host is not enforced without a table", async () => {
      const hostEndpoint = (node: string) =>
        put("hostendpoints", "HostEndpoint", "eth0", { node, interfaceName: "eth0" });

      expect((await run({}, hostEndpoint("here"))).code).toBe(1);
      expect((await run({}, hostEndpoint("there"))).code).toBe(0);
    });

    test("one that cannot be read is a warning", async () => {
      const { code, stdout } = await runInside(["node", "check"], {
        ...{ files, hostName: "here", hostFacts: { ...well, hasPolicyTable: false } },
        openDatastore: () => Promise.reject(new PluginError("datastore-unavailable", "Cannot open it")),
      });

      expect(code).toBe(0);
      expect(stdout).toMatch(/^warning +network policy +.*is unknown: Cannot open it/m);
    });

    const configured = (more: object) => ({
      "/etc/cni/net.d/10-net.conf": JSON.stringify({
        ...{ name: "pods", cniVersion: "1.0.0", type: identity.product, ipam: { type: identity.ipamType } },
        ...{ datastore_type: "embedded", datastore_path: import.meta.path, ...more },
      }),
    });
    const withConfig = (more: object, facts: Partial<HostFacts> = {}) =>
      runInside(["node", "check"], {
        ...{ files: configured(more), hostName: "here", store: openMemory() },
        hostFacts: { ...well, agent: "not used", hasPolicyTable: false, ...facts },
      });
    const ABSENT_FILE = `${import.meta.dir}/absent`;

    test.each([
      ["the datastore's file, with containers", { datastore_path: ABSENT_FILE }, [link], "warning", ABSENT_FILE],
      ["the datastore's file, without containers", { datastore_path: ABSENT_FILE }, [], "ok", "nothing to enforce"],
      ["the file of the node's name", { nodename_file: ABSENT_FILE }, [], "warning", ABSENT_FILE],
    ] as const)("if it lacks %s", async (_, more, podLinks, state, message) => {
      const { stdout } = await withConfig(more, { podLinks });

      expect(stdout).toMatch(new RegExp(`^${state} +network policy .*${message}`, "m"));
    });

    test("a record that cannot be read is a warning", async () => {
      const broken = { kind: "put" as const, key: resourceKey("hostendpoints", { name: "eth0" }), value: "{" };
      const { code, stdout } = await run({}, broken);

      expect(code).toBe(0);
      expect(stdout).toMatch(/^warning +network policy +.*is unknown: .*eth0/m);
    });

    test("a network config that cannot be used does not make a stopped agent superfluous", async () => {
      const { code, stdout } = await withConfig(
        { ipam: 1, policy: { type: "k8s" } },
        { agent: "stopped", podLinks: [] },
      );

      expect(code).toBe(1);
      expect(stdout).toMatch(/^failed +node agent +not running/m);
      expect(stdout).not.toContain("policy.type");
    });

    test("a network config that is damaged is a failure that names the place in it", async () => {
      const { code, stdout } = await runInside(["node", "check"], {
        ...{ files: { "/etc/cni/net.d/10-net.conf": '{\n "name": "pods"\n "type": "x" }' }, hostName: "here" },
        hostFacts: { ...well, agent: "stopped", hasPolicyTable: false, podLinks: [] },
      });

      expect(code).toBe(1);
      expect(stdout).toMatch(/^failed +node agent +not running/m);
      expect(stdout).toMatch(
        /^failed +network config +Cannot use \/etc\/cni\/net\.d\/10-net\.conf:3:2: not valid JSON/m,
      );
      expect(stdout).not.toContain("nothing to enforce");
    });

    describe("containers that run here", () => {
      const marked = (name: string, alias: string): PodLinkFacts => ({ ...link, name, alias });
      const [known, unknown] = [marked("vend1", "pods/db1/eth0"), marked("vend2", `pods/${"ab".repeat(32)}/eth0`)];
      const recorded = put(
        "workloadendpoints",
        "WorkloadEndpoint",
        "here-cni-db1-eth0",
        {
          orchestrator: "cni",
          node: "here",
          workload: "db",
          containerID: "db1",
          endpoint: "eth0",
          interfaceName: "vend1",
        },
        { namespace: "default" },
      );
      const check = async (podLinks: readonly PodLinkFacts[], more: Parameters<typeof runInside>[1] = {}) => {
        const store = openMemory();
        await seed(store, recorded);
        const hostFacts = { ...well, podLinks };
        return runInside(["node", "check"], { files: configured({}), hostName: "here", store, hostFacts, ...more });
      };

      test("and that the datastore does not know are a failure", async () => {
        const { code, stdout } = await check([known, unknown]);

        expect(code).toBe(1);
        expect(stdout).toMatch(/^failed +containers +1 container runs here that .* \(abababababab\): was it lost\?/m);
      });

      test("are all unknown if the file of the datastore does not exist", async () => {
        const { stdout } = await check([known, unknown], { files: configured({ datastore_path: ABSENT_FILE }) });

        expect(stdout).toMatch(/^failed +containers +2 containers run here that/m);
      });

      test("are no failure if all are known, of another network, or cannot be judged", async () => {
        const refused = () => Promise.reject(new PluginError("datastore-unavailable", "Cannot open it"));
        const broken = openMemory();
        await seed(broken, { ...recorded, value: "{" });
        const results = [
          await check([known]),
          await check([known, marked("vend2", "other/c2/eth0"), marked("vend3", "mine")]),
          await check([known, unknown], { openDatastore: refused }),
          await check([known, unknown], { store: broken }),
        ];

        expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
      });

      test("are a warning on Kubernetes, whose kubelet ends them", async () => {
        const files = configured({ kubernetes: { kubeconfig: "/k" } });
        const { code, stdout } = await check([known, unknown], { files });

        expect(code).toBe(0);
        expect(stdout).toMatch(/^warning +containers +1 container runs here .*: their pods are deleted/m);
      });
    });

    test("works on a node of Kubernetes whose name cannot be read", async () => {
      const kubernetes = { datastore_type: "kubernetes", kubernetes: { kubeconfig: "/k" } };
      const { code, stdout } = await withConfig({ ...kubernetes, nodename_file: ABSENT_FILE }, { agent: "stopped" });

      expect(code).toBe(1);
      expect(stdout).toContain("--field-selector spec.nodeName=here");
    });

    test.each([
      ["nothing if policy is required anyway", { policy: { type: "k8s" } }, []],
      ["no endpoints if there are no policies", {}, ["networkpolicies", "globalnetworkpolicies", "hostendpoints"]],
    ])("%s", async (_, more, kinds) => {
      const store: Datastore = openMemory();
      const prefixes: string[] = [];
      const original = store.read.bind(store);
      const read: Datastore["read"] = (wanted, at) => {
        for (const each of wanted) if (each.kind === "prefix") prefixes.push(each.prefix);
        return original(wanted, at);
      };
      await runInside(["node", "check"], {
        ...{ files: configured(more), hostName: "here", store: Object.assign(store, { read }) },
        hostFacts: { ...well, hasPolicyTable: false },
      });

      expect(prefixes).toEqual(kinds.map((plural) => resourcesPrefix(plural)));
    });
  });

  test("fails if another program changed the table of floating IPs", () => {
    const hostFacts: HostFacts = { ...well, tables: { ...well.tables, floating: "changed" } };
    expect(findingsOf(hostFacts).filter(({ state }) => state === "failed")).toEqual([
      expect.objectContaining({ check: "floating IPs", remedy: expect.stringContaining("node restore") }),
    ]);
  });

  const ABSENT = { nat: "missing", floating: "missing", guard: "missing", hostPorts: "missing" } as const;
  const mapped = { ...link, servesLoopback: true };
  type Case = readonly [string, Partial<HostFacts & SwitchFacts>, readonly ("ok" | "warning" | "failed")[]];
  const CASES: readonly Case[] = [
    ["a host without pods", { tables: ABSENT, podLinks: [] }, ["ok", "ok", "ok", "ok"]],
    ["a flushed ruleset", { tables: ABSENT, podLinks: [link, mapped] }, ["warning", "failed", "failed", "ok"]],
    ["no natOutgoing", { tables: { ...ABSENT, guard: "intact" } }, ["ok", "ok", "ok", "ok"]],
    [
      "changed tables",
      { tables: { nat: "changed", guard: "changed", hostPorts: "changed", floating: "changed" } },
      ["failed", "failed", "failed", "ok"],
    ],
    ["loose filters", { podLinks: [{ ...link, reversePath: 2 }] }, ["ok", "ok", "ok", "warning"]],
    [
      "loose filters and no guard",
      { podLinks: [{ ...link, reversePath: 0 }], tables: { ...well.tables, guard: "missing" } },
      ["ok", "failed", "ok", "failed"],
    ],
    ["a pod that may send from other prefixes", { podLinks: [link, open] }, ["ok", "ok", "ok", "ok"]],
    ["one of IPv6 only", { podLinks: [{ ...open, reversePath: 1, allowedFamilies: [6] }] }, ["ok", "ok", "ok", "ok"]],
    ["one that lost them", { podLinks: [{ ...open, allowedFamilies: [] }] }, ["ok", "failed", "ok", "ok"]],
    [
      "one whose prefixes are switched off",
      { podLinks: [{ ...open, allowedFamilies: [] }], allowsFurtherSources: false },
      ["ok", "ok", "ok", "ok"],
    ],
    [
      "one while the addresses of pools and nodes are not known",
      { podLinks: [open], knowsClusterSources: false },
      ["ok", "failed", "ok", "ok"],
    ],
    ["one whose packets are dropped", { podLinks: [{ ...open, reversePath: 1 }] }, ["ok", "ok", "ok", "warning"]],
  ];
  test.each(CASES)("judges the product's own tables and reverse path filters: %s", (_, more, states) => {
    const own = findingsOf({ ...well, ...more }).filter(({ check }) => OWN_CHECKS.includes(check));
    expect(own.map(({ state }) => state)).toEqual([...states]);
    for (const { state, remedy } of own) expect(remedy === undefined).toBe(state === "ok");
  });
});

describe("the remedy for loose reverse path filters", () => {
  test("spares the links that must stay open", () => {
    const podLinks = [{ ...link, reversePath: 0 }, open];
    const { remedy } = findingsOf({ ...well, podLinks }).find(({ check }) => check === "rp_filter") ?? {};

    expect(remedy).toContain("/conf/vend1/rp_filter;");
    expect(remedy).not.toContain("vend*");
  });
});

const OWN_CHECKS = ["NAT", "spoofing", "host ports", "rp_filter"];

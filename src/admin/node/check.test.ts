import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { findingsOf, policyFinding } from "./check.ts";
import type { HostFacts, PodLinkFacts } from "./host-facts.ts";
import type { SwitchFacts } from "./own-table-findings.ts";

const link: PodLinkFacts = {
  name: "vend1",
  reversePath: 1,
  servesLoopback: false,
  allowsSources: false,
  allowedFamilies: [],
};
/** Its pod may send from other prefixes. */
const open: PodLinkFacts = { ...link, name: "vend2", reversePath: 0, allowsSources: true, allowedFamilies: [4, 6] };
const well: HostFacts = {
  forwarding: { ipv4: true, ipv6: true },
  hasLegacyFilter: false,
  droppingChains: [],
  partlyDroppingChains: [],
  tables: { nat: "intact", guard: "intact", hostPorts: "intact", floating: "intact" },
  podLinks: [link],
  knowsClusterSources: true,
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
    const hostFacts = { ...well, forwarding: { ipv4: false, ipv6: true }, hasLegacyFilter: true };
    const states = findingsOf(hostFacts).map(({ state }) => state);
    expect(states).toEqual(["warning", "ok", "ok", "warning", "ok", "ok", "ok", "ok", "ok"]);
    expect((await runInside(["node", "check"], { hostFacts })).code).toBe(0);
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
    expect(JSON.parse(stdout)).toEqual({ ok: true, findings: [...findingsOf(well), policyFinding(well, false)] });
  });

  test.each([
    [true, true, "ok", "the node agent has set its rules"],
    [false, false, "ok", "no table: no policy is enforced on this host"],
    [false, true, "failed", "the node agent has not set its rules: pods are not added"],
  ])("with a policy table %p and policy.type %p: %s", (hasPolicyTable, isRequired, state, message) => {
    const finding = policyFinding({ hasPolicyTable }, isRequired);
    expect(finding.state).toBe(state as "ok");
    expect(finding.message).toContain(message);
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

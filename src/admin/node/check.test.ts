import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { findingsOf } from "./check.ts";
import type { HostFacts } from "./host-facts.ts";

const well: HostFacts = { forwarding: { ipv4: true, ipv6: true }, hasLegacyFilter: false, droppingChains: [] };
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
    expect(findingsOf(hostFacts).map(({ state }) => state)).toEqual(["warning", "ok", "ok", "warning"]);
    expect((await runInside(["node", "check"], { hostFacts })).code).toBe(0);
  });

  test("prints JSON for scripts", async () => {
    const { stdout } = await runInside(["node", "check", "-o", "json"], { hostFacts: well });
    expect(JSON.parse(stdout)).toEqual({ ok: true, findings: [...findingsOf(well)] });
  });
});

import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { poolChange, seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import type { NatPool } from "../../firewall/nat-table.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { resourceKey } from "../../model/keys.ts";

const restored = async (words: string, { written = [] as readonly string[], more = "" } = {}) => {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24", { natOutgoing: true }), poolChange("red", "10.1.0.0/24"));
  if (more !== "") await seed(store, { kind: "create", key: resourceKey("ippools", { name: "bad" }), value: more });
  const given: string[] = [];
  const restoreTables = async (pools: readonly NatPool[]) => {
    given.push(...pools.map(({ cidr, natOutgoing }) => `${formatPrefix(cidr)} ${natOutgoing}`));
    return written;
  };
  const files = words.includes("--for-agent") ? NETWORK : {};
  return { ...(await runInside(words.split(" "), { store, restoreTables, files })), given: given.sort() };
};
const NETWORK = {
  "/etc/cni/net.d/10.conflist": JSON.stringify({
    name: "net",
    cniVersion: "1.0.0",
    plugins: [{ type: "vendor", datastore_type: "embedded", ipam: { type: "vendor-ipam" } }],
  }),
};

describe("node restore", () => {
  test("writes the tables for all pools, and says which were written", async () => {
    const { code, stdout, given } = await restored("node restore", { written: ["inet a", "inet b"] });

    expect([code, given]).toEqual([0, ["10.0.0.0/24 true", "10.1.0.0/24 false"]]);
    expect(stdout).toContain("inet a, inet b");
    expect((await restored("node restore")).stdout).toContain("up to date");
    expect((await restored("node restore -o json")).stdout).toBe('{"written":[]}\n');
  });

  test("writes nothing if a pool is unreadable: its pods would lose their NAT", async () => {
    const { code, given, stderr } = await restored("node restore", { more: "{" });

    expect([code, given]).toEqual([1, []]);
    expect(stderr).toContain("bad");
  });
});

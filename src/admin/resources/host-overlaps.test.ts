import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { API_VERSION } from "../../identity.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";

const hostAddresses = ["192.168.1.5/24", "fd00:1::5/64"].map((text) => {
  const address = parseInterfaceAddress(text);
  if (address === undefined) throw new Error(text);
  return { ...address, link: { name: "eth0", mtu: 1500, defaultRoutes: [4, 6] as const } };
});

const apply = (cidr: string) =>
  runInside(["apply", "-f", "-"], {
    hostAddresses,
    stdin: JSON.stringify({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "blue" }, spec: { cidr } }),
  });

describe("apply of a pool", () => {
  test.each(["192.168.0.0/16", "192.168.1.128/26", "fd00:1::/48"])("warns of %s, and writes it", async (cidr) => {
    const { code, stderr } = await apply(cidr);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: pool "blue" .* overlaps the network of this host's address \S+:/);
  });

  test("is silent about a pool of its own", async () => {
    expect((await apply("10.0.0.0/16")).stderr).toBe("");
  });
});

/** Requests that etcd itself counted for one call of the IPAM plugin. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { countRequests, hasEtcd } from "../support/etcd.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { IPAM_SITES, type IpamSite, PLUGIN } from "../support/ipam-site.ts";
import { runPlugin } from "../support/run-plugin.ts";

describe.skipIf(!hasEtcd)(`round trips to etcd${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  let site: IpamSite;
  beforeAll(async () => {
    const [, etcd] = IPAM_SITES;
    site = await etcd.start(nodeChange("node-1"), poolChange("four", "10.0.0.0/16"), poolChange("six", "fd00::/64"));
  });
  afterAll(() => site.stop());

  const total = async () => {
    const counts = await countRequests(site.endpoint ?? "");
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  };
  const roundTrips = async (command: string, container: string, assignIpv6 = "false") => {
    const before = await total();
    const run = await runPlugin(PLUGIN, {
      env: { ...site.environment, CNI_COMMAND: command, CNI_CONTAINERID: container, CNI_IFNAME: "eth0" },
      stdin: { ...site.config, ipam: { type: "vendor-ipam", assign_ipv6: assignIpv6 } },
    });
    expect(run).toMatchObject({ exitCode: 0 });
    return (await total()) - before;
  };

  test("the first ADD on a node takes 3, both families at once too", async () => {
    expect(await roundTrips("ADD", "first", "true")).toBe(3);
  });

  test("every ADD after it, and every DEL, takes 2", async () => {
    const counts: number[] = [];
    for (let index = 0; index < 5; index++) counts.push(await roundTrips("ADD", `c${index}`, "true"));
    for (let index = 0; index < 5; index++) counts.push(await roundTrips("DEL", `c${index}`));

    expect(counts).toEqual(Array.from({ length: 10 }, () => 2));
  });

  test("a second ADD of the same attachment, and a second DEL, read once and write nothing", async () => {
    await roundTrips("ADD", "again");
    expect(await roundTrips("ADD", "again")).toBe(1);
    await roundTrips("DEL", "again");
    expect(await roundTrips("DEL", "again")).toBe(1);
  });

  test("a host that forgot its hints takes one more, once", async () => {
    const forget = () => rmSync(Object.values(site.environment)[0] ?? "", { recursive: true, force: true });
    forget();
    expect(await roundTrips("ADD", "later")).toBe(3);
    expect(await roundTrips("ADD", "later-still")).toBe(2);
    forget();
    expect(await roundTrips("DEL", "later")).toBe(3);
  });
});

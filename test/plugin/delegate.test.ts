/** Other IPAM plugins: Debian's host-local, our own in the same process, and one that fails on demand. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { resourceKey } from "../../src/model/keys.ts";
import { MACHINE_ANNOTATION } from "../../src/model/machine-annotation.ts";
import { node as nodeKind } from "../../src/model/node.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import {
  type CallOptions,
  failureOf,
  type Json,
  openPluginSite,
  type PluginSite,
  WITHOUT_NET_ADMIN,
  withoutLinks,
} from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";

const DEBIAN = "/usr/lib/cni";
const HOST_LOCALS = [
  { name: "Debian's host-local", path: DEBIAN, missing: existsSync(`${DEBIAN}/host-local`) ? undefined : "needs it" },
  { name: "our own host-local", path: dirname(builtProgram()), missing: undefined },
];
const RANGES = [[{ subnet: "10.88.0.0/24" }], [{ subnet: "fd88::/112" }]];

for (const { name, path, missing } of HOST_LOCALS) {
  const test = testNeeding(hostProblem(), missing);
  describe(`plugin with ${name}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite("embedded");
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const withIpam = (ipam: Json = {}, more: Json = {}): CallOptions => ({
      // Debian's predates CNI 1.1.0.
      config: site.config({ cniVersion: "1.0.0", ipam: { type: "host-local", ranges: RANGES, ...ipam }, ...more }),
      environment: { CNI_PATH: path },
    });

    test("assigns single addresses of the ranges with our own gateways, records the endpoint, and leaves nothing", async () => {
      const [first, second] = [await site.makePod(), await site.makePod()];
      const result = await site.add(first, withIpam());
      const other = await site.add(second, withIpam());

      expect(result.ips).toEqual([
        { address: "10.88.0.2/32", interface: 1 },
        { address: "fd88::2/128", interface: 1 },
      ]);
      expect(result.routes.map((route) => route["gw"])).toEqual(["169.254.1.1", "fe80::ecee:eeff:feee:eeee"]);
      for (const { address } of other.ips) {
        await site.inside(first, ["ping", "-c1", "-W2", address.split("/")[0] ?? ""]);
      }
      expect((await site.left()).filter((line) => line.includes("workloadendpoints"))).toHaveLength(2);
      await site.quietly("CHECK", first, withIpam({}, { prevResult: result }));
      await site.quietly("DEL", first, withIpam());
      expect(failureOf(await site.call("CHECK", first, withIpam({}, { prevResult: result }))).code).not.toBe(0);
      await site.host.must(["ip", "netns", "delete", second.netnsName]);
      await site.quietly("DEL", second, withIpam());
      await site.quietly("DEL", second, withIpam());
      expect(await site.left()).toEqual([]);
    });

    test("gives the requested MAC, and refuses requests for addresses", async () => {
      const pod = await site.makePod();
      const mac = "02:00:00:00:00:77";
      const refused = await site.call("ADD", pod, withIpam({}, { runtimeConfig: { ips: ["10.88.0.77"], mac } }));
      expect(failureOf(refused).code).toBe(2);
      expect(await site.left()).toEqual([]);

      const result = await site.add(pod, withIpam({}, { runtimeConfig: { mac } }));
      expect(result.interfaces[1]?.mac).toBe(mac);
      await site.quietly("DEL", pod, withIpam());
      expect(await site.left()).toEqual([]);
    });

    test("uses its routes instead of the default ones, and both if the config says so", async () => {
      const routes = [{ dst: "192.0.2.0/24", gw: "10.88.0.1" }, { dst: "2001:db8::/64" }];
      for (const [more, expected] of [
        [{}, ["192.0.2.0/24", "2001:db8::/64"]],
        [{ include_default_routes: true }, ["192.0.2.0/24", "2001:db8::/64", "0.0.0.0/0", "::/0"]],
      ] as const) {
        const pod = await site.makePod();
        const result = await site.add(pod, withIpam({ routes }, more));

        expect(result.routes.map((route) => route["dst"])).toEqual([...expected]);
        const held = await site.inside(pod, ["sh", "-c", "ip route; ip -6 route"]);
        for (const line of ["192.0.2.0/24 via 169.254.1.1", "2001:db8::/64 via fe80::"]) expect(held).toContain(line);
        expect(held.includes("default via")).toBe(expected.length > 2);
        await site.quietly("DEL", pod, withIpam({ routes }, more));
      }
      expect(await site.left()).toEqual([]);
    });

    test("refuses pools, and assigns nothing", async () => {
      const pod = await site.makePod();
      expect(failureOf(await site.call("ADD", pod, withIpam({ ipv4_pools: ["10.50.0.0/16"] }))).code).toBe(7);
      expect(await site.left()).toEqual([]);
    });

    test("may assign more addresses than annotations of a pod could record", async () => {
      const ranges = Array.from({ length: 33 }, (_, index) => [{ subnet: `10.88.${index}.0/24` }]);
      const pod = await site.makePod();
      const result = await site.add(pod, withIpam({ ranges }));

      expect(result.ips).toHaveLength(33);
      await site.quietly("CHECK", pod, withIpam({ ranges }, { prevResult: result }));
      await site.quietly("DEL", pod, withIpam({ ranges }));
      expect(await site.left()).toEqual([]);
    });

    test("releases what a killed ADD had assigned", async () => {
      const pod = await site.makePod();
      const reservation = "/var/lib/cni/networks/net/10.88.0.77";
      site.host.writeFile(reservation, `${pod.containerId}\r\neth0`);
      const first = await site.call("ADD", pod, withIpam());
      // Our own returns the existing addresses; upstream's refuses a second ADD.
      if (first.code !== 0) {
        expect(await site.left()).toEqual([]);
        await site.add(pod, withIpam());
      } else expect(JSON.parse(first.stdout).ips[0].address).toBe("10.88.0.77/32");
      await site.quietly("DEL", pod, withIpam());
      expect(await site.left()).toEqual([]);
    });

    test("does not affect a container if a second ADD is refused, and returns the same result if it is not", async () => {
      const pod = await site.makePod();
      const prevResult = await site.add(pod, withIpam());
      const before = withoutLinks(await site.left());
      const second = await site.call("ADD", pod, withIpam());

      if (second.code === 0) expect(JSON.parse(second.stdout)).toEqual(prevResult);
      expect(withoutLinks(await site.left())).toEqual(before);
      await site.quietly("CHECK", pod, withIpam({}, { prevResult }));
      await site.quietly("DEL", pod, withIpam());
      expect(await site.left()).toEqual([]);
    });

    test("releases its addresses if a later step fails", async () => {
      const pod = await site.makePod();
      // The kernel has no IPv6 on a link as narrow as this.
      expect(failureOf(await site.call("ADD", pod, withIpam({}, { mtu: 1000 }))).code).toBe(107);
      expect(await site.left()).toEqual([]);
    });
  });
}

describe("plugin with our own host-local in process", () => {
  const test = testNeeding(hostProblem());

  test("returns the same result for a second ADD", async () => {
    await using site = await openPluginSite("embedded");
    const pod = await site.makePod();
    const options = {
      config: site.config({ ipam: { type: "host-local", ranges: RANGES } }),
      environment: { CNI_PATH: dirname(builtProgram()) },
    };
    const first = await site.add(pod, options);

    expect(await site.add(pod, options)).toEqual(first);
    await site.quietly("STATUS", pod, options);
    await site.quietly("GC", pod, { ...options, config: { ...options.config, "cni.dev/valid-attachments": [] } });
    expect(await site.left()).toEqual([]);
  });

  test("leaves one endpoint if the node has another name at a second ADD, and none after a DEL under another name", async () => {
    await using site = await openPluginSite("embedded");
    const [again, gone] = [await site.makePod(), await site.makePod()];
    const under = (nodename: string, more: Json = {}): CallOptions => ({
      config: site.config({ nodename, ipam: { type: "host-local", ranges: RANGES }, ...more }),
      environment: { CNI_PATH: dirname(builtProgram()) },
    });
    const endpoints = async () => (await site.left()).filter((line) => line.includes("workloadendpoints"));
    const first = await site.add(again, under("node-1.example.org"));

    expect(await site.add(again, under("node-1"))).toEqual(first);
    expect(await endpoints()).toEqual([expect.not.stringContaining("example.org")]);
    const prevResult = await site.add(gone, under("node-1.example.org"));
    await site.quietly("DEL", gone, under("node-1", { prevResult }));
    expect(await endpoints()).toHaveLength(1);
    await site.quietly("DEL", again, under("node-1"));
    expect(await site.left()).toEqual([]);
  });

  test("keeps the endpoint of a container with the same ID and address on another machine", async () => {
    await using site = await openPluginSite("embedded");
    const pod = await site.makePod();
    const options: CallOptions = {
      config: site.config({ ipam: { type: "host-local", ranges: RANGES } }),
      environment: { CNI_PATH: dirname(builtProgram()) },
    };
    await site.add(pod, options);
    const records = await site.store.list();
    const [key = "", value = ""] = [...records].find(([each]) => each.includes("workloadendpoints")) ?? [];
    const [theirs, node] = [key.replace("node--1", "node--2"), { name: "node-2" }];
    const annotations = { [MACHINE_ANNOTATION]: "another-machine" };
    await site.store.put([
      { kind: "put", key: theirs, value: value.replaceAll("node-1", "node-2").replaceAll("node--1", "node--2") },
      {
        kind: "put",
        key: resourceKey("nodes", node),
        value: nodeKind.write(nodeKind.make({ ...node, annotations }, {})),
      },
    ]);
    await site.store.remove(key);

    await site.add(pod, options);
    expect([...(await site.store.list()).keys()].filter((each) => each.includes("workloadendpoints"))).toEqual([
      key,
      theirs,
    ]);
  });

  test("keeps the address of a link that GC cannot remove", async () => {
    await using site = await openPluginSite("embedded");
    const pod = await site.makePod();
    const options = {
      config: site.config({ ipam: { type: "host-local", ranges: RANGES }, "cni.dev/valid-attachments": [] }),
      environment: { CNI_PATH: dirname(builtProgram()) },
    };
    await site.add(pod, options);
    const before = await site.left();

    expect(failureOf(await site.call("GC", pod, { ...options, under: WITHOUT_NET_ADMIN })).code).toBe(107);
    expect(await site.left()).toEqual(before);
    await site.quietly("GC", pod, options);
    expect(await site.left()).toEqual([]);
  });

  test("releases what our own IPAM assigned before the config was changed", async () => {
    await using site = await openPluginSite("embedded");
    const pod = await site.makePod();
    await site.add(pod);
    await site.quietly("DEL", pod, {
      config: site.config({ ipam: { type: "host-local", ranges: RANGES }, mtu: 1400, num_queues: 2 }),
      environment: { CNI_PATH: dirname(builtProgram()) },
    });
    expect(await site.left()).toEqual([]);
  });
});

describe("plugin with an IPAM plugin that", () => {
  const test = testNeeding(hostProblem());
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const FOLDER = "/opt/spies";
  /** A plugin with a fixed result of ADD; it records how it is called. */
  const spy = (name: string, script: string): CallOptions => {
    const file = `${FOLDER}/${name}`;
    site.host.writeFile(file, `#!/bin/sh\necho "$CNI_COMMAND" >> ${FOLDER}/calls\n${script}\n`);
    site.host.writeFile(`${FOLDER}/calls`, "");
    chmodSync(site.host.view(file), 0o755);
    return { config: site.config({ ipam: { type: name } }), environment: { CNI_PATH: FOLDER } };
  };
  const calls = () =>
    readFileSync(site.host.view(`${FOLDER}/calls`), "utf8")
      .trim()
      .split("\n");
  const GIVES = `[ "$CNI_COMMAND" = ADD ] && echo '{"ips":[{"address":"10.77.0.5/24"}]}'; exit 0`;

  test("returns no address gets a DEL", async () => {
    const options = spy("gives-nothing", `[ "$CNI_COMMAND" = ADD ] && echo '{"ips":[]}'; exit 0`);
    expect(failureOf(await site.call("ADD", await site.makePod(), options)).code).toBe(108);
    expect(calls()).toEqual(["ADD", "DEL"]);
    expect(await site.left()).toEqual([]);
  });

  test("fails has its own code and message passed on", async () => {
    const options = spy("fails", `echo '{"code":123,"msg":"of its own"}'; exit 1`);
    const pod = await site.makePod();
    expect(failureOf(await site.call("ADD", pod, options))).toMatchObject({ code: 123, msg: "of its own" });
    expect(failureOf(await site.call("DEL", pod, options))).toMatchObject({ code: 123, msg: "of its own" });
    expect(failureOf(await site.call("STATUS", pod, options))).toMatchObject({ code: 123, msg: "of its own" });
    expect(await site.left()).toEqual([]);
  });

  test("returns an address that cannot be wired gets a DEL", async () => {
    const options = spy("gives", GIVES);
    await site.host.must(["sh", "-c", "ip link add taken type veth peer name other; ip link set taken up"]);
    await site.host.must(["ip", "route", "add", "10.77.0.5/32", "dev", "taken"]);
    const before = await site.left();
    const failure = failureOf(await site.call("ADD", await site.makePod(), options));

    expect(failure).toMatchObject({ code: 107, msg: expect.stringContaining('"taken"') });
    expect(calls()).toEqual(["ADD", "DEL"]);
    expect(await site.left()).toEqual(before);
    await site.host.must(["ip", "link", "delete", "taken"]);
  });

  test("ignores a requested address is refused, and told to take back what it gave", async () => {
    const options = spy("gives", GIVES);
    const failure = failureOf(await site.call("ADD", await site.makePod({ args: "IP=10.77.0.9" }), options));

    expect(failure).toMatchObject({ code: 108, msg: expect.stringContaining('"10.77.0.9" (IP of CNI_ARGS)') });
    expect(calls()).toEqual(["ADD", "DEL"]);
    const pod = await site.makePod({ args: "IP=10.77.0.5" });
    await site.add(pod, options);
    await site.quietly("DEL", pod, options);
    expect(await site.left()).toEqual([]);
  });

  test("returns another address for a second ADD is refused, and the container keeps what it has", async () => {
    const given = (second: string) =>
      `[ "$CNI_COMMAND" = ADD ] || exit 0
       if [ "$(grep -c ADD ${FOLDER}/calls)" = 1 ]; then address=10.77.0.5/24; else address=${second}; fi
       printf '{"ips":[{"address":"%s"}]}' "$address"`;
    for (const second of ["10.77.0.6/24", "nonsense"]) {
      const options = spy("changes-its-mind", given(second));
      const pod = await site.makePod();
      const prevResult = await site.add(pod, options);
      const before = withoutLinks(await site.left());

      expect(failureOf(await site.call("ADD", pod, options)).code).toBe(108);
      expect([second, calls()]).toEqual([second, ["ADD", "ADD"]]);
      expect(withoutLinks(await site.left())).toEqual(before);
      await site.quietly("CHECK", pod, { ...options, config: { ...options.config, prevResult } });
      await site.quietly("DEL", pod, options);
      expect(await site.left()).toEqual([]);
    }
  });

  test("is called for every command, also if the namespace is deleted", async () => {
    const options = spy("gives", GIVES);
    const pod = await site.makePod();
    const prevResult = await site.add(pod, options);
    const config = { ...options.config, prevResult, "cni.dev/valid-attachments": [] };
    await site.quietly("CHECK", pod, { ...options, config });
    await site.quietly("STATUS", pod, options);
    await site.quietly("GC", pod, { ...options, config });
    await site.host.must(["ip", "netns", "delete", pod.netnsName]);
    await site.quietly("DEL", pod, options);

    expect(calls()).toEqual(["ADD", "CHECK", "STATUS", "GC", "DEL"]);
    expect(await site.left()).toEqual([]);
  });

  test("returns routes with all properties has them passed on in the newest version", async () => {
    const route = { dst: "192.0.2.0/24", mtu: 1400, advmss: 1360, priority: 50, table: 100, scope: 0 };
    const answer = { cniVersion: "1.1.0", ips: [{ address: "10.77.0.6/24" }], routes: [route] };
    const options = spy("routes", `[ "$CNI_COMMAND" = ADD ] && echo '${JSON.stringify(answer)}'; exit 0`);
    const pod = await site.makePod();

    expect((await site.add(pod, options)).routes).toEqual([{ ...route, gw: "169.254.1.1" }]);
    expect(await site.inside(pod, ["ip", "route", "show", "table", "100"])).toBe(
      "192.0.2.0/24 via 169.254.1.1 dev eth0 metric 50 mtu 1400 advmss 1360 \n",
    );
    await site.quietly("DEL", pod, options);
  });
});

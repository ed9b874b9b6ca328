/** Whatever stops an ADD, everything it did is undone. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { failureOf, openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { STORES } from "./stores.ts";

for (const { kind, test } of STORES) {
  describe(`a failed ADD on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    test("undoes everything if the kernel refuses a sysctl", async () => {
      // The kernel has no IPv6 on a link as narrow as this.
      const failure = failureOf(await site.call("ADD", await site.makePod(), { config: site.config({ mtu: 1000 }) }));
      expect(failure.code).toBe(107);
      expect(await site.left()).toEqual([]);
    });

    test("undoes everything if the host has the route already", async () => {
      await site.host.must(["sh", "-c", "ip link add taken type veth peer name other; ip link set taken up"]);
      await site.host.must(["ip", "route", "add", "10.50.8.8/32", "dev", "taken"]);
      const before = await site.left();
      const failure = failureOf(await site.call("ADD", await site.makePod({ args: "IP=10.50.8.8" })));

      expect(failure).toMatchObject({ code: 107, msg: expect.stringContaining('"taken"') });
      expect(await site.left()).toEqual(before);
      await site.host.must(["ip", "link", "delete", "taken"]);
    });

    test("assigns nothing if the host's interface name is used by another link", async () => {
      const pod = await site.makePod({ containerId: "abc" });
      await site.host.must(["ip", "link", "add", `${identity.interfacePrefix}abc`, "type", "bridge"]);
      const before = await site.left();
      expect(failureOf(await site.call("ADD", pod)).code).toBe(106);
      expect(await site.left()).toEqual(before);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual(before);
      await site.host.must(["ip", "link", "delete", `${identity.interfacePrefix}abc`]);
    });

    test("assigns nothing if the pools have no such address", async () => {
      const ipam = { type: identity.ipamType, ipv4_pools: ["absent"] };
      const pod = await site.makePod();
      expect(failureOf(await site.call("ADD", pod, { config: site.config({ ipam }) })).code).toBe(101);
      const outside = await site.makePod({ args: "IP=203.0.113.1" });
      expect(failureOf(await site.call("ADD", outside)).code).toBe(105);
      expect(await site.left()).toEqual([]);
    });

    test("assigns nothing if it is stopped before a readiness gate is ready", async () => {
      const pod = await site.makePod();
      const config = site.config({ readiness_gates: ["http://127.0.0.1:9/never"] });
      const stopped = await site.call("ADD", pod, { config, limitMilliseconds: 1_500 });

      expect(JSON.parse(stopped.stdout).code).toBe(111);
      expect(await site.left()).toEqual([]);
    });

    test("assigns nothing if the runtime removes the sandbox meanwhile, by our IPAM or another plugin", async () => {
      // Debian's predates CNI 1.1.0.
      const hostLocal = { cniVersion: "1.0.0", ipam: { type: "host-local", ranges: [[{ subnet: "10.88.0.0/24" }]] } };
      for (const more of [{}, hostLocal]) {
        const pod = await site.makePod();
        const url = await gateThat(site, ["ip", "netns", "delete", pod.netnsName]);
        const options = { config: site.config({ readiness_gates: [url], ...more }), limitMilliseconds: 20_000 };
        const failure = failureOf(await site.call("ADD", pod, options));

        expect(failure).toMatchObject({ code: 8, msg: expect.stringContaining("was removed during the call") });
        expect(await site.left()).toEqual([]);
      }
    });

    test("does not undo what an earlier ADD made", async () => {
      const pod = await site.makePod({ args: "IP=10.50.8.9" });
      await site.add(pod);
      await site.host.must(["sh", "-c", "ip link add taken type veth peer name other; ip link set taken up"]);
      await site.host.must(["ip", "route", "del", "10.50.8.9/32"]);
      await site.host.must(["ip", "route", "add", "10.50.8.9/32", "dev", "taken"]);
      const before = await site.left();
      expect(failureOf(await site.call("ADD", pod)).code).toBe(107);

      expect(await site.left()).toEqual(before);
      await site.quietly("DEL", pod);
      await site.host.must(["ip", "link", "delete", "taken"]);
      expect(await site.left()).toEqual([]);
    });
  });
}

let gates = 0;

/** A readiness gate that runs the command when an ADD asks for the first time, and opens then. */
async function gateThat({ host }: PluginSite, command: readonly string[]): Promise<string> {
  gates += 1;
  const [file, log, port] = [`${host.directory}/gate-${gates}.ts`, `gate-${gates}.log`, 8080 + gates];
  host.writeFile(
    file,
    `let done = false;
    const fetch = () => {
      if (!done) Bun.spawnSync(${JSON.stringify(command)});
      done = true;
      return new Response();
    };
    Bun.serve({ hostname: "127.0.0.1", port: ${port}, fetch });
    console.log("ready");`,
  );
  host.start([process.execPath, file], log);
  await pollUntil(() => readFileSync(host.view(`${host.directory}/${log}`), "utf8").includes("ready"), "the gate");
  return `http://127.0.0.1:${port}/`;
}

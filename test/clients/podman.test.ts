/** podman uses every network under test as its users do. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { fetchFromHost, pingEach } from "../support/connectivity.ts";
import { type Host, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { installNetwork } from "../support/network-under-test.ts";
import { type Podman, podmanProblem, usePodman } from "../support/podman.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { expectTraces, tracesOf } from "../support/traces.ts";
import { networksUnderTest } from "./networks.ts";

const SERVE = ["/bin/httpd", "-f", "-p", "80", "-h", "/www"];

describe.each(await networksUnderTest())("podman on $title", (network) => {
  let host: Host;
  let podman: Podman;
  const testPodman = testNeeding(podmanProblem(), network.missing);

  beforeAll(async () => {
    if ((podmanProblem() ?? network.missing) !== undefined) return;
    host = await openHost();
    await installNetwork(host, network);
    podman = usePodman(host);
  });
  afterAll(() => host?.[Symbol.asyncDispose]());

  testPodman("runs containers that reach each other, serves a published port, and leaves nothing", async () => {
    const before = await tracesOf(host, network);
    const starts = [podman.run("first", network.name, SERVE, ["8088:80"]), podman.run("second", network.name, SERVE)];
    await Promise.all(starts);
    const first = await podman.addressesOf("first", network.name);
    const second = await podman.addressesOf("second", network.name);

    expect(first.map((address, index) => address.startsWith(network.addressPrefixes[index] ?? "none"))).toEqual(
      network.addressPrefixes.map(() => true),
    );
    expect(await podman.exec("first", ["/bin/cat", "/www/index.html"])).toBe("hello\n");
    await pingEach((command) => podman.exec("first", command), second);
    await pingEach((command) => podman.exec("second", command), first);
    expect(await fetchFromHost(host, "127.0.0.1", 8088)).toBe("hello\n");
    expect(await fetchFromHost(host, first[0] ?? "none", 80)).toBe("hello\n");

    await podman.stop("first");
    await podman.remove("first");
    await podman.remove("second");
    await expectTraces(host, network, before);
  });

  testPodman("connects a container again if it is restarted", async () => {
    const before = await tracesOf(host, network);
    await podman.run("restarted", network.name, SERVE, ["8089:80"]);
    await podman.stop("restarted");
    await expectTraces(host, network, before);
    await podman.start("restarted");

    expect(await fetchFromHost(host, "127.0.0.1", 8089)).toBe("hello\n");
    await podman.reload("restarted");
    expect(await fetchFromHost(host, "127.0.0.1", 8089)).toBe("hello\n");
    await podman.remove("restarted");
    await expectTraces(host, network, before);
  });

  if (!network.name.startsWith("own-")) return;
  const [prefix4 = "", prefix6 = ""] = network.addressPrefixes;
  const MAC = "02:00:00:00:00:77";
  for (const [families, options, addresses] of [
    ["one family", ["--ip", `${prefix4}77`], [`${prefix4}77`, expect.stringContaining(prefix6)]],
    ["the other family", ["--ip6", `${prefix6}77`], [expect.stringContaining(prefix4), `${prefix6}77`]],
    ["both families", ["--ip", `${prefix4}77`, "--ip6", `${prefix6}77`], [`${prefix4}77`, `${prefix6}77`]],
  ] as const)
    testPodman(`gives the addresses and the MAC that are asked for: ${families}`, async () => {
      const before = await tracesOf(host, network);
      await podman.run("fixed", network.name, SERVE, [], [...options, "--mac-address", MAC]);

      expect(await podman.addressesOf("fixed", network.name)).toEqual(addresses);
      expect(await podman.exec("fixed", ["/bin/cat", "/sys/class/net/eth0/address"])).toBe(`${MAC}\n`);
      expect(await fetchFromHost(host, (await podman.addressesOf("fixed", network.name))[0] ?? "none", 80)).toBe(
        "hello\n",
      );
      const second = podman.run("second", network.name, SERVE, [], options);
      await expect(second).rejects.toThrow("is taken by");
      await podman.remove("second");
      await podman.stop("fixed");
      await podman.start("fixed");
      expect(await podman.addressesOf("fixed", network.name)).toEqual(addresses);
      await podman.remove("fixed");
      await expectTraces(host, network, before);
    });

  testPodman(
    "keeps the labels of a reloaded container, also after a flush of all rules, not of a restarted one",
    async () => {
      const before = await tracesOf(host, network);
      await podman.run("labelled", network.name, SERVE, ["8090:80"]);
      const admin = (...words: readonly string[]) => host.must([builtProgram(identity.adminTool), ...words]);
      const endpoints = async () =>
        (
          JSON.parse(await admin("get", "workloadendpoints", "-A", "-o", "json")) as {
            readonly items: readonly { readonly metadata: { name: string; labels: Record<string, string> } }[];
          }
        ).items.map(({ metadata }) => metadata);
      const role = async () => (await endpoints())[0]?.labels["role"];
      await admin("label", "workloadendpoint", (await endpoints())[0]?.name ?? "none", "role=web");
      const addresses = await podman.addressesOf("labelled", network.name);

      // Twice: nothing is lost with the first.
      for (let times = 0; times < 2; times++) {
        await host.must(["nft", "flush ruleset"]);
        await podman.reload("labelled");
        expect([await role(), await podman.addressesOf("labelled", network.name)]).toEqual(["web", addresses]);
        expect(await fetchFromHost(host, "127.0.0.1", 8090)).toBe("hello\n");
      }
      await podman.stop("labelled");
      await podman.start("labelled");
      expect(await role()).toBeUndefined();
      expect(await fetchFromHost(host, "127.0.0.1", 8090)).toBe("hello\n");
      const folders = ["labels", "host-ports"].map((name) => `${identity.runDirectory}/${name}`);
      const kept = (await host.must(["find", ...folders, "-type", "f"])).trim().split("\n");
      expect(kept).toEqual([expect.stringContaining("/host-ports/")]);
      await podman.remove("labelled");
      await expectTraces(host, network, before);
    },
  );

  if (network.served === undefined) return;
  testPodman("had all of these calls served by the node agent", () => {
    const served = network.served?.(host) ?? [];

    for (const program of ["plugin", "portmap", "bandwidth"]) {
      for (const command of ["ADD", "DEL"]) expect(served).toContain(`${program} ${command}: exit code 0`);
    }
  });
});

/** A rule with http lets connections through to a pod whose sidecar reports, on the real kernel. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type KernelTable, openKernelTable } from "../../src/agent/policy/kernel-table.ts";
import { readSidecarInterfaces } from "../../src/alp/feed/recovered-sidecars.ts";
import { identity } from "../../src/identity.ts";
import { ownSockets } from "../../src/linux/netlink-socket.ts";
import { writeSysctl } from "../../src/linux/sysctl.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import { askTcpWithin, insideNetns, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { changesBetween, NO_RESOURCES } from "../support/policy-changes.ts";

const needs = [canMakeNetns ? undefined : "needs root, ip and nsenter", program("nft")];
const test = testNeeding(...needs);
const area = new NetnsArea("sidecars");
const CLIENT = "10.93.1.2";
const SERVER = "10.93.2.2";
const OTHER = "10.93.3.2";
const PORT = 80;
const interfaceOf = (index: number) => `${identity.interfacePrefix}${index}`;
const nameOf = (pod: string) => `here-k8s-${pod}-eth0`;
const keyOf = (pod: string) => ENDPOINT.key({ namespace: "red", name: nameOf(pod) });

const endpoint = (pod: string, index: number, address: string) =>
  workloadEndpoint.make(
    { name: nameOf(pod), namespace: "red", labels: { pod, [`${identity.labelPrefix}namespace`]: "red" } },
    {
      ...{ node: "here", orchestrator: "k8s", pod, endpoint: "eth0" },
      ...{ interfaceName: interfaceOf(index), ipNetworks: [`${address}/32`] },
    },
  );
const RESOURCES = {
  ...NO_RESOURCES,
  endpoints: [endpoint("client", 0, CLIENT), endpoint("server", 1, SERVER), endpoint("other", 2, OTHER)],
  networkPolicies: [
    networkPolicy.make(
      { name: "http", namespace: "red" },
      {
        tier: "default",
        types: ["Ingress", "Egress"],
        ingress: [{ action: "Allow", destination: { ports: [PORT] }, http: { methods: ["GET"] } }],
        egress: [{ action: "Allow" }],
      },
    ),
  ],
};

describe("a rule with http", () => {
  let host: TestNetns;
  let client: TestNetns;
  let kernel: KernelTable;
  let servers: readonly Disposable[];
  beforeAll(() => {
    if (needs.some((need) => need !== undefined)) return;
    area.sweep();
    host = area.create("host");
    client = area.create("client");
    const pods = [area.create("server"), area.create("other")];
    for (const [index, pod] of [client, ...pods].entries()) connect(pod, index);
    insideNetns(host.path, () => writeSysctl("net/ipv4/ip_forward", "1"));
    kernel = insideNetns(host.path, () => openKernelTable(ownSockets));
    servers = pods.flatMap(({ path }) => [PORT, PORT + 1].map((port) => serveTcp(path, "pod", port)));
  });
  afterAll(() => {
    for (const server of servers ?? []) server[Symbol.dispose]();
    kernel?.close();
    area.sweep();
  });

  function connect({ name, path }: TestNetns, index: number): void {
    const [pod, gateway] = [`10.93.${index + 1}.2/24`, `10.93.${index + 1}.1`];
    const own = interfaceOf(index);
    runIn(host, ["ip", "link", "add", own, "type", "veth", "peer", "name", "eth0", "netns", name]);
    runIn(host, ["ip", "address", "add", `${gateway}/24`, "dev", own]);
    runIn(host, ["ip", "link", "set", own, "up"]);
    runIn({ name, path }, ["ip", "address", "add", pod, "dev", "eth0"]);
    runIn({ name, path }, ["ip", "link", "set", "eth0", "up"]);
    runIn({ name, path }, ["ip", "route", "add", "default", "via", gateway]);
  }

  test("lets connections through while the sidecar of the pod reports, and only to it", async () => {
    const compiler = new PolicyCompiler({ node: "here" });
    compiler.update(changesBetween(NO_RESOURCES, RESOURCES));
    compiler.takeDelta();
    insideNetns(host.path, () => kernel.replace(compiler.table));
    const report = (...pods: readonly string[]) => {
      compiler.setSidecars({ endpoints: new Set(pods.map(keyOf)) });
      expect(kernel.change(compiler.table, compiler.takeDelta())).toBeUndefined();
      expect(insideNetns(host.path, () => readSidecarInterfaces(ownSockets))).toEqual(
        new Set(pods.map(() => interfaceOf(1))),
      );
    };
    const passes = async (address: string, port: number, patience = 300) =>
      (await askTcpWithin(patience, client.path, address, port)).startsWith("pod ");

    expect(await passes(SERVER, PORT)).toBe(false);

    report("server");
    expect(await passes(SERVER, PORT, 3_000)).toBe(true);
    expect(await Promise.all([passes(SERVER, PORT + 1), passes(OTHER, PORT)])).toEqual([false, false]);

    report();
    expect(await passes(SERVER, PORT)).toBe(false);
  });
});

/** Who else than BIRD of a node could speak BGP in its name: its pods, its users, and somebody who broke into it. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { birdRoutes } from "./bird-routes.ts";
import { setMode } from "./modes.ts";
import type { NetworkNode } from "./routed-network.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "./routed-site.ts";
import { startRouterEtcd } from "./router-datastore.ts";

const needs = [
  hostProblem(),
  hasEtcd ? undefined : "needs etcd",
  program("bird"),
  program("setpriv"),
  program("python3"),
];
const test = testNeeding(...needs);
const SPEAKER = `${import.meta.dir}/bgp-speaker.process.ts`;
const IN_POOL = "10.50.200.0/26";
const OTHERS = ["0.0.0.0/1", "10.1.0.1/32", "10.1.2.3/32", "192.0.2.0/24"];
const CONNECT_SECONDS = 3;
const USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const SECOND_ADDRESS = "10.1.1.77";

describe("BGP between nodes, with pools that masquerade and without a password", () => {
  let site: RoutedSite;
  let one: NetworkNode;
  let two: NetworkNode;
  let pod: RoutedPod;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openRoutedSite({ startDatastore: startRouterEtcd, agents: ["node-1", "node-2"] });
    [one, two] = [site.network.node("node-1"), site.network.node("node-2")];
    await setMode(site, { vxlan: "Never", bgp: "Enabled", natOutgoing: true });
    pod = await site.addPod("node-1/a");
    await learnsBlock();
  }, 90_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  test("a pod, masqueraded as its node, does not reach BIRD of another one", async () => {
    const enter = ["nsenter", `--net=${pod.inner}`];
    for (const address of two.addresses) {
      const before = await dropped(one);
      expect(await reached(pod.host.run([...enter, ...connectTo(address, 22)]))).toBe("refused");
      expect(await reached(pod.host.run([...enter, ...connectTo(address, 179)]))).toBe("dropped");
      expect(await dropped(one)).toBeGreaterThan(before);
    }
  });

  test("neither does a user of the node, also after the rules were flushed", async () => {
    await one.host.must(["nft", "flush", "ruleset"]);
    await pollUntil(async () => (await one.host.run(LIST)).code === 0, "the table");
    for (const address of two.addresses) {
      const before = await dropped(one);
      expect(await reached(one.host.run([...USER, ...connectTo(address, 22)]))).toBe("refused");
      expect(await reached(one.host.run([...USER, ...connectTo(address, 179)]))).toBe("dropped");
      expect(await dropped(one)).toBeGreaterThan(before);
    }
  });

  test("root of the node does, also if a rule of the host translates its connections", async () => {
    const chain = "type nat hook postrouting priority srcnat\nmasquerade fully-random";
    await one.host.must(["nft", "-f", "-"], {
      stdin: `table inet translated {\nchain all_packets {\n${chain}\n}\n}\n`,
    });
    try {
      for (const address of two.addresses) {
        expect(await reached(one.host.run(connectTo(address, 179)))).toBe("reached: ");
      }
    } finally {
      await one.host.must(["nft", "delete", "table", "inet", "translated"]);
    }
  });

  test("another program of the node does, from another address", async () => {
    const address = [`${SECOND_ADDRESS}/24`, "dev", "eth0"];
    await one.host.must(["ip", "address", "add", ...address]);
    try {
      const from = connectTo(two.addresses[0], 179, `, ("${SECOND_ADDRESS}", 0)`);
      expect(await reached(one.host.run([...USER, ...from]))).toBe("reached: ");
    } finally {
      await one.host.must(["ip", "address", "delete", ...address]);
    }
  });

  test("root of a node announces networks of pods at most, not servers, nodes or the rest of the world", async () => {
    const speaker = [process.execPath, SPEAKER, two.addresses[0], "64512", one.addresses[0], ...OTHERS, IN_POOL];
    one.host.start(speaker, "speaker.log");
    await pollUntil(async () => (await birdRoutes(two.host)).includes("10.50.200.0/26"), "the network in the pool");

    for (const network of OTHERS) {
      expect(await birdRoutes(two.host)).not.toContain(network.replace("/32", " "));
    }
  });

  function connectTo(address: string, port: number, more = ""): readonly string[] {
    const words = `import socket; socket.create_connection(("${address}", ${port}), ${CONNECT_SECONDS}${more})`;
    return ["python3", "-c", words];
  }

  async function learnsBlock(): Promise<void> {
    await pollUntil(
      async () => (await birdRoutes(two.host)).includes(` via ${one.addresses[0]} `),
      "the block of node-1",
    );
  }
});

const LIST = ["nft", "list", "table", "inet", "vendor_bgp"];

async function dropped({ host }: NetworkNode): Promise<number> {
  const counters = (await host.must(LIST)).matchAll(/counter packets (\d+)/g);
  return [...counters].reduce((sum, [, packets]) => sum + Number(packets), 0);
}

async function reached(attempt: Promise<{ readonly stderr: string }>): Promise<string> {
  const { stderr } = await attempt;
  if (stderr.includes("ConnectionRefusedError")) return "refused";
  return /timed out|TimeoutError|PermissionError/.test(stderr) ? "dropped" : `reached: ${stderr}`;
}

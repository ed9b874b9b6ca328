/** What IP itself needs works under default deny of both directions: ARP, neighbour discovery and path MTU errors. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { ALL, egress, ingress, ipBlock, labels, ports } from "./kubernetes-policies.ts";
import { type End, openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";
import { outcomeOf, serve } from "./probes.ts";

const needs = [hostProblem(), program("nft"), program("ping")];
const test = testNeeding(...needs);
const PORT = 80;
const LARGE_PORT = 90;
const FAR = ["198.51.101.2", "2001:db8:2::2"] as const;
const FAR_BLOCKS = FAR.map((address) => ipBlock(`${address}/${address.includes(":") ? 128 : 32}`));
/** The smallest that IPv6 allows. */
const NARROW_MTU = 1280;
const TOO_LARGE = "x".repeat(NARROW_MTU + 100);

describe("default deny of both directions", () => {
  let policies: PolicySite;
  let isolated: PodEnd;
  let server: PodEnd;
  let client: PodEnd;
  let far: End;
  let listeners: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite();
    await policies.labelNamespace("x", {});
    isolated = await policies.addPod("x/isolated");
    server = await policies.addPod("x/server", { app: "server" });
    client = await policies.addPod("x/client", { app: "client" });
    far = await connectFar(policies);
    listeners = [...(await serve(isolated, [PORT])), await serveLarge(server)];
    await policies.setPolicies([
      ingress("x", ALL),
      egress("x", ALL),
      ingress("x", labels("app", "server"), {
        from: FAR_BLOCKS,
        ports: ports("UDP", LARGE_PORT),
      }),
      egress("x", labels("app", "client"), { to: FAR_BLOCKS, ports: ports("UDP", LARGE_PORT) }),
    ]);
    await policies.untilApplied();
  });
  afterAll(async () => {
    for (const each of listeners ?? []) each[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

  const inPod = ({ pod }: PodEnd, ...words: readonly string[]) => policies.site.inside(pod, ["ip", ...words]);

  test("the host finds the pod again after its neighbour table was emptied, in both families", async () => {
    const host = policies.ends.get("host");
    if (host === undefined) throw new Error("no host");
    await policies.site.host.must(["ip", "neigh", "flush", "all"]);
    await inPod(isolated, "neigh", "flush", "all");
    const probe = { from: host, to: isolated, protocol: "tcp", port: PORT } as const;
    const outcomes = ([4, 6] as const).map((family) => outcomeOf({ ...probe, family }, "allow", policies.site.host));
    expect(await Promise.all(outcomes)).toEqual(["allow", "allow"]);
  });

  test("the pod finds its gateway, although nothing that it sends is allowed", async () => {
    await inPod(isolated, "neigh", "flush", "all");
    const outside = policies.ends.get("outside");
    for (const address of outside?.addresses ?? []) {
      const ping = ["ping", "-c", "1", "-W", "0.3", address];
      const { code } = await policies.site.host.run(["nsenter", `--net=${isolated.pod.netns}`, ...ping]);
      expect(code).toBe(1);
    }
    const neighbours = async () => (await inPod(isolated, "neigh", "show", "dev", "eth0")).trim().split("\n");
    const found = async () => (await neighbours()).filter((line) => line.includes(" lladdr ")).length >= 2;
    await pollUntil(found, "ARP and neighbour discovery");
  });

  test("a path MTU error of a router reaches the pod whose reply was too large", async () => {
    for (const address of server.addresses) {
      const target = FAR[address.includes(":") ? 1 : 0];
      await pollUntil(async () => {
        await ask(far, address, "?");
        return (await inPod(server, "route", "get", target)).includes(`mtu ${NARROW_MTU}`);
      }, `the pod to learn the MTU of the path to ${target}`);
    }
  });

  test("a path MTU error of a router reaches the pod whose request was too large", async () => {
    for (const target of FAR) {
      await pollUntil(async () => {
        await ask(client, target, TOO_LARGE);
        return (await inPod(client, "route", "get", target)).includes(`mtu ${NARROW_MTU}`);
      }, `the pod to learn the MTU of the path to ${target}`);
    }
  });
});

/** A host behind a link with a small MTU: `pod - host - outside - far`. */
async function connectFar({ site: { host } }: PolicySite): Promise<End> {
  const run = (text: string) => host.must(text.split(" "));
  await run("ip netns add vt-far");
  await run(`ip -n vt-outside link add far0 mtu ${NARROW_MTU} type veth peer name eth0 mtu ${NARROW_MTU} netns vt-far`);
  const forward = "for file in ipv4/ip_forward ipv6/conf/all/forwarding; do echo 1 > /proc/sys/net/$file; done";
  await host.must(["ip", "netns", "exec", "vt-outside", "sh", "-c", forward]);
  for (const [name, link, end] of [
    ["vt-outside", "far0", 1],
    ["vt-far", "eth0", 2],
  ] as const) {
    await run(`ip -n ${name} link set ${link} up`);
    await run(`ip -n ${name} addr add 198.51.101.${end}/24 dev ${link}`);
    await run(`ip -n ${name} addr add 2001:db8:2::${end}/64 dev ${link} nodad`);
  }
  await run("ip -n vt-far route add default via 198.51.101.1");
  await run("ip -n vt-far -6 route add default via 2001:db8:2::1");
  await run("ip route add 198.51.101.0/24 via 198.51.100.2");
  await run("ip -6 route add 2001:db8:2::/64 via 2001:db8:1::2");
  return { name: "far", netns: host.view("/run/netns/vt-far"), addresses: FAR };
}

/** Replies to a datagram with one that does not fit through the narrow link. */
async function serveLarge({ netns }: End): Promise<Disposable> {
  const socket = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname: "::",
      port: LARGE_PORT,
      socket: {
        data: (own, _data, port, address) => {
          try {
            own.send(TOO_LARGE, port, address);
          } catch {
            // The error that the test waits for.
          }
        },
        error: () => {},
      },
    }),
  );
  return { [Symbol.dispose]: () => socket.close() };
}

async function ask({ netns }: End, address: string, content: string): Promise<void> {
  const socket = await insideNetns(netns, () =>
    Bun.udpSocket({ hostname: address.includes(":") ? "::" : "0.0.0.0", socket: { error: () => {} } }),
  );
  try {
    socket.send(content, LARGE_PORT, address);
  } catch {
    // The error that the test waits for.
  }
  await Bun.sleep(100);
  socket.close();
}

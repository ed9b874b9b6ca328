import { describe, expect, test } from "bun:test";
import { openKernelTable } from "../../src/agent/policy/kernel-table.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { parsePrefix } from "../../src/ip/prefix.ts";
import { defaultAllowProfile } from "../../src/model/default-allow-profile.ts";
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { hostInterfaceName } from "../../src/model/host-interface-name.ts";
import { ENDPOINT, GLOBAL_NETWORK_POLICY, NODE } from "../../src/model/kinds.ts";
import { node } from "../../src/model/node.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { workloadEndpointName } from "../../src/model/workload-endpoint-name.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import { address } from "../../test/support/ip.ts";
import { poolChange, request } from "../../test/support/ipam.ts";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { ModelSockets } from "../kernel/nftables/model-sockets.ts";
import { nothingDeniedIsDelivered } from "./denied.ts";
import { formerConnectionsAreForgotten } from "./former-connections.ts";
import { noAddressLeadsToAnotherPod, noNodeAddressLeadsToPod } from "./node-addresses.ts";
import { handMadeHosts } from "./packets/hand-made-network.ts";
import type { EnterHost } from "./packets/network.ts";
import { replyTo } from "./packets/probes.ts";
import { policyStateOf } from "./policy-state.ts";
import { reachableWhereAllowed } from "./reachability.ts";
import { emptyHost, SmallWorld } from "./small-world.ts";

const acceptAll: EnterHost = () => () => ({ verdict: "accept" });
const dropIngress: EnterHost =
  () =>
  ({ hook, oif }) => ({
    verdict: hook === "forward" && oif?.name.startsWith("vend") === true ? "drop" : "accept",
  });

function twoHosts() {
  const world = new SmallWorld();
  const hosts = handMadeHosts();
  world.table.commit([poolChange("blue", "10.0.0.0/16", { vxlanMode: "Always" })]);
  hosts.forEach(({ name, root, container, segment }, index) => {
    const number = index + 1;
    const spec = {
      bgp: { ipv4Address: `192.0.2.${number}/24` },
      ...{ ipv4VXLANTunnelAddr: `10.0.${number}.0`, vxlanTunnelMACAddr: `66:00:00:00:00:0${number}` },
    };
    const value = NODE.codec.write(node.make({ name }, spec));
    world.table.commit([{ kind: "put", key: NODE.key({ name }), value }]);
    const host = { ...emptyHost(), root, segment, namespaceAt: () => container };
    world.nodes.set(name, { name, isRegistered: true, attachments: new Map(), host });
    addPod(world, `pod-${number}`, name, `10.0.${number}.5`);
  });
  return { world, hosts };
}

function addPod(world: SmallWorld, name: string, on: string, address: string, labels = {}): void {
  const pod = { namespace: "default", name, uid: name };
  world.pods.set(`default/${name}`, { ...pod, node: on, isEnding: false });
  world.attach(on, { pod, containerId: name, state: "attached", addresses: [address], netnsPath: name });
  const made = workloadEndpointName({ node: on, orchestrator: "k8s", workload: name, endpoint: "eth0" });
  const names = { namespace: "default", name: made.ok ? made.name : "" };
  const endpoint = workloadEndpoint.make(
    { ...names, labels },
    {
      ...{ node: on, pod: name, orchestrator: "k8s", endpoint: "eth0", containerID: name },
      ...{
        interfaceName: `vend${name.slice(-1)}`,
        ipNetworks: [`${address}/32`],
        profiles: [defaultAllowProfile.metadata.name],
      },
    },
  );
  world.table.commit([{ kind: "put", key: ENDPOINT.key(names), value: ENDPOINT.codec.write(endpoint) }]);
}

type Rules = Parameters<typeof globalNetworkPolicy.make>[1]["ingress"];

function denyAll(world: SmallWorld, selector = "all()", ingress: Rules = [{ action: "Deny" }]): void {
  const spec = {
    tier: "default",
    selector,
    types: ["Ingress" as const],
    ...(ingress === undefined ? {} : { ingress }),
  };
  const policy = globalNetworkPolicy.make(
    { name: "deny" },
    { ...spec, doNotTrack: false, preDNAT: false, applyOnForward: false },
  );
  const value = GLOBAL_NETWORK_POLICY.codec.write(policy);
  world.table.commit([{ kind: "put", key: GLOBAL_NETWORK_POLICY.key({ name: "deny" }), value }]);
}

/** With the tables that the product compiles. Returns a function that compiles them again. */
function enforce(world: SmallWorld, hosts: ReturnType<typeof handMadeHosts>): () => void {
  const kernels = hosts.map(({ name, root }) => {
    const sockets = new ModelSockets();
    root.nftables = sockets.state;
    return { node: name, table: openKernelTable(sockets) };
  });
  const update = () => {
    for (const { node: name, table } of kernels) {
      const compiler = new PolicyCompiler({ node: name, hasServices: false });
      compiler.update(changesBetween(NO_RESOURCES, policyStateOf(world.records).resources));
      table.replace(compiler.table);
    }
  };
  update();
  return update;
}

describe("reachableWhereAllowed()", () => {
  test("is content if everything is open, or if everything is closed, as policy says", () => {
    const { world } = twoHosts();
    expect(reachableWhereAllowed(acceptAll).check(world)).toEqual([]);
    denyAll(world);
    expect(reachableWhereAllowed(dropIngress).check(world)).toEqual([]);
  });

  test("is content with the tables that the product compiles, and notices that one is gone", () => {
    const { world, hosts } = twoHosts();
    denyAll(world, "has(closed)");
    addPod(world, "pod-1", "node-1", "10.0.1.5", { closed: "" });
    enforce(world, hosts);
    expect(reachableWhereAllowed().check(world)).toEqual([]);
    hosts[0].root.nftables.tables.clear();

    expect(reachableWhereAllowed().check(world)[0]).toContain("to pod default/pod-1 on node-1 arrives, but must not");
  });

  test("finds packets that arrive against policy, and says why they must not", () => {
    const { world } = twoHosts();
    denyAll(world);

    expect(reachableWhereAllowed(acceptAll).check(world)[0]).toBe(
      'TCP 9 (10.0.2.0 → 10.0.1.5) from node node-2 to pod default/pod-1 on node-1 arrives, but must not (pool "blue" has a vxlan tunnel; ' +
        'ingress deny: GlobalNetworkPolicy "deny", ingress rule 1 (spec.ingress[0]): deny everything); its way: ' +
        "node-2: 10.0.1.0/24 via 10.0.1.0 dev vxlan.vend | tunnel 192.0.2.2 → 192.0.2.1 | node-1: 10.0.1.5/32 dev vend1",
    );
  });

  test("finds packets that do not arrive although they may", () => {
    const { world, hosts } = twoHosts();
    expect(reachableWhereAllowed(dropIngress).check(world)[0]).toContain("does not arrive, but must");
    hosts[1].root.forwarding.splice(0);
    expect(reachableWhereAllowed(acceptAll).check(world)[0]).toContain(
      "from node node-2 to pod default/pod-1 on node-1 does not arrive, but must",
    );
  });

  test("finds a reply that does not arrive", () => {
    const { world } = twoHosts();
    const dropReplies: EnterHost =
      () =>
      ({ hook, packet }) => ({
        verdict: hook === "forward" && packet.sourcePort === 9 ? "drop" : "accept",
      });
    expect(reachableWhereAllowed(dropReplies).check(world)[0]).toStartWith(
      "The reply to TCP 9 (10.0.2.0 → 10.0.1.5) from node node-2 to pod default/pod-1 on node-1 does not arrive",
    );
  });

  test("finds a pod without a namespace or an endpoint", () => {
    const { world } = twoHosts();
    const one = world.nodes.get("node-1")?.attachments.get("pod-1");
    if (one) world.attach("node-1", { ...one, addresses: ["10.0.1.6"] });

    expect(reachableWhereAllowed(acceptAll).check(world)).toEqual([
      "pod default/pod-1 on node-1 has no endpoint of its addresses",
    ]);
  });

  test("expects nothing where a node has no tunnel, and finds packets that arrive there", () => {
    const { world } = twoHosts();
    const value = NODE.codec.write(node.make({ name: "node-2" }, { bgp: { ipv4Address: "192.0.2.2/24" } }));
    world.table.commit([{ kind: "put", key: NODE.key({ name: "node-2" }), value }]);

    expect(reachableWhereAllowed(acceptAll).check(world)[0]).toContain(
      'arrives, but must not (node "node-2" has no vxlan address',
    );
  });
});

describe("nothingDeniedIsDelivered()", () => {
  /** `quietSince`: until now no fault touched the nodes. */
  function deniedWorld(quietSince: number) {
    const { world, hosts } = twoHosts();
    denyAll(world);
    for (const each of world.nodes.values()) {
      const host = each.host ?? expect.unreachable();
      const quietTimes = () => [{ since: quietSince, until: world.now }];
      Object.defineProperty(host, "quietTimes", { get: quietTimes });
    }
    const invariant = nothingDeniedIsDelivered(acceptAll);
    const change = () => {
      for (const { root } of hosts) root.changes += 1;
    };
    const lookAt = (now: number) => {
      world.now = now;
      return invariant.check(world);
    };
    const checkAt = (now: number) => {
      change();
      return lookAt(now);
    };
    return { world, lookAt, checkAt };
  }

  test("gives an undisturbed agent ten seconds, and names what arrives then", () => {
    const { checkAt } = deniedWorld(Number.NEGATIVE_INFINITY);

    expect([checkAt(0), checkAt(9_000)]).toEqual([[], []]);
    expect(checkAt(10_000)[0]).toContain("pod default/pod-1 on node-1 arrives, but must not (");
  });

  test("looks again only when a kernel has changed", () => {
    const { lookAt, checkAt } = deniedWorld(Number.NEGATIVE_INFINITY);
    checkAt(0);

    expect(checkAt(10_000)).not.toEqual([]);
    expect(lookAt(10_001)).toEqual([]);
    expect(checkAt(10_002)).not.toEqual([]);
  });

  test("gives an agent a minute after a fault", () => {
    const { checkAt } = deniedWorld(0);

    expect([checkAt(0), checkAt(60_000)]).toEqual([[], []]);
    expect(checkAt(70_000)).not.toEqual([]);
  });

  test("does not blame the agent for what others have deleted a moment ago", () => {
    const { world, checkAt } = deniedWorld(Number.NEGATIVE_INFINITY);
    for (const { host } of world.nodes.values()) Object.assign(host ?? {}, { tamperedAt: 5_000 });
    checkAt(0);

    expect(checkAt(20_000)).toEqual([]);
  });

  test("accepts that a packet arrives as soon as policy allows it", () => {
    const { world, checkAt } = deniedWorld(Number.NEGATIVE_INFINITY);
    checkAt(0);
    denyAll(world, "has(closed)");

    expect(checkAt(20_000)).toEqual([]);
  });
});

describe("noNodeAddressLeadsToPod()", () => {
  test("finds a route that leads the address of a machine to a container", () => {
    const { world, hosts } = twoHosts();
    const invariant = noNodeAddressLeadsToPod();
    expect(invariant.check(world)).toEqual([]);
    const { root } = hosts[0];
    const toPod = root.routes.find(({ linkIndex }) => root.links.get(linkIndex ?? 0)?.kind === "veth");
    const destination = parsePrefix("192.0.2.2/32") ?? expect.unreachable();
    root.routes.push({ ...(toPod ?? expect.unreachable()), destination });
    root.changes += 1;

    expect(invariant.check(world)[0]).toContain("node-1 has a route 192.0.2.2/32 to ");
  });
});

describe("noAddressLeadsToAnotherPod()", () => {
  test("finds a route that leads the address of a container to that of another pod", () => {
    const { world, hosts } = twoHosts();
    const invariant = noAddressLeadsToAnotherPod();
    const { root } = hosts[0];
    const pod = { namespace: "default", name: "pod-1", uid: "pod-1" };
    const link = hostInterfaceName({ containerId: "pod-1", ifname: "eth0", pod });
    root.addLink({ index: 9, name: link, kind: "veth" });
    const lead = (to: string) => {
      root.addRoute(`${to}/32`, { linkIndex: 9 });
      root.changes += 1;
    };
    lead("10.0.1.5");
    lead("10.0.2.6");
    expect(invariant.check(world)).toEqual([]);
    lead("10.0.2.5");

    expect(invariant.check(world)).toEqual([`node-1 leads 10.0.2.5 to "${link}", but it belongs to pod default/pod-2`]);
    // A container whose ADD has not ended may have had the address before.
    const attached = world.nodes.get("node-1")?.attachments.get("pod-1") ?? expect.unreachable();
    world.attach("node-1", { ...attached, state: "adding" });
    expect(invariant.check(world)).toEqual([]);
  });

  test("finds one for an address that waits for its pod", async () => {
    const { world, hosts } = twoHosts();
    const keep = { handle: "keep-db", containerId: "c1", when: "always" as const, title: 'pod "default/db"' };
    const attributes = { namespace: "default", pod: "db" };
    const { addresses } = await world.allocator.assign(request("net.c1", { keep, attributes }));
    const invariant = noAddressLeadsToAnotherPod();
    const { root } = hosts[0];
    const pod = { namespace: "default", name: "pod-1", uid: "pod-1" };
    root.addLink({
      index: 9,
      name: hostInterfaceName({ containerId: "pod-1", ifname: "eth0", pod }),
      kind: "veth",
    });
    root.addRoute(`${addresses.map(({ address }) => formatAddress(address))}/32`, { linkIndex: 9 });
    root.changes += 1;
    expect(invariant.check(world)).toEqual([]);

    await world.allocator.releaseHandle({ handle: "net.c1", node: "node-1", kept: keep });
    expect(invariant.check(world)).toEqual([expect.stringContaining("belongs to pod default/db")]);
  });
});

describe("formerConnectionsAreForgotten()", () => {
  /** Friends are let in. Pod 2 is one, has a connection to pod 1, and goes after 100 s; the next pod with its address is not. */
  function usedAgain({ quietSince = Number.NEGATIVE_INFINITY, hasReplied = true } = {}) {
    const { world, hosts } = twoHosts();
    denyAll(world, "all()", [{ action: "Allow", source: { selector: "has(friend)" } }]);
    addPod(world, "pod-2", "node-2", "10.0.2.5", { friend: "" });
    const enforceAgain = enforce(world, hosts);
    const ports = { protocol: 17, sourcePort: 41_000, destinationPort: 80 };
    const packet = { source: address("10.0.2.5"), destination: address("10.0.1.5"), ...ports };
    const { connections } = hosts[0].root.nftables;
    connections.track(packet);
    if (hasReplied) connections.track(replyTo(packet));
    const { host } = world.nodes.get("node-1") ?? {};
    Object.defineProperty(host, "quietTimes", { get: () => [{ since: quietSince, until: world.now }] });
    const invariant = formerConnectionsAreForgotten();
    const checkAt = (now: number) => {
      world.now = now;
      return invariant.check(world);
    };
    expect(checkAt(0)).toEqual([]);
    const [, { key = "", revision = "" } = {}] = world.records.under(ENDPOINT.prefix());
    world.table.commit([{ kind: "delete", key, revision }]);
    world.nodes.get("node-2")?.attachments.delete("pod-2");
    world.pods.delete("default/pod-2");
    expect(checkAt(100_000)).toEqual([]);
    addPod(world, "next-2", "node-2", "10.0.2.5");
    enforceAgain();
    return { checkAt, connections };
  }

  test("finds a packet of the next pod that passes over the connection of the former one, after ten seconds", () => {
    const { checkAt } = usedAgain();

    expect(checkAt(109_000)).toEqual([]);
    expect(checkAt(110_000)[0]).toContain(
      "UDP 80 (10.0.2.5 → 10.0.1.5) from pod default/next-2 on node-2 to pod default/pod-1 on node-1 arrives over a connection of pod-2 that node-1 tracks",
    );
  });

  test("is content once the connection is forgotten, or was never answered", () => {
    const { checkAt, connections } = usedAgain();
    for (const entry of connections.list()) connections.remove(entry);

    expect(checkAt(110_000)).toEqual([]);
    expect(usedAgain({ hasReplied: false }).checkAt(110_000)).toEqual([]);
  });

  test("does not blame an agent that was disturbed within the last minute", () => {
    expect(usedAgain({ quietSince: 41_000 }).checkAt(300_000)).toEqual([]);
    expect(usedAgain({ quietSince: 39_000 }).checkAt(300_000)).not.toEqual([]);
  });
});

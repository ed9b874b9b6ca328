/** Tunnel devices, entries, routes and the guard of one node in the kernel, from the plan of a small cluster. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { followNetwork } from "../../src/agent/node-routes/follow-network.ts";
import { openKernelGuard } from "../../src/agent/node-routes/kernel-guard.ts";
import { openKernelNetwork } from "../../src/agent/node-routes/kernel-network.ts";
import { NetworkKeeper } from "../../src/agent/node-routes/network-keeper.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { formatPrefix } from "../../src/ip/prefix.ts";
import { readChecksumOffload } from "../../src/linux/checksum-offload.ts";
import { ownSockets } from "../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, runInNetns } from "../../src/linux/netns.ts";
import { type NetworkEvent, watchNetwork } from "../../src/linux/rtnetlink/network-monitor.ts";
import { type FactChanges, RoutePlanner } from "../../src/routing/planner.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";
import { blockFact, deleteFact, nodeFact, poolFact, putFact } from "../support/routing-facts.ts";

const area = new NetnsArea("keeper");
const DEVICE = "vxlan.vendor";
const DEVICE6 = "vxlan-v6.vendor";
/** Usually it takes a tenth of a second. */
const SOON = 5_000;

const NODES = {
  a: { ipv4: "192.168.5.1/24", ipv6: "fd05::1/64", vxlan4: "10.60.0.0", vxlan6: "fd60::" },
  b: { ipv4: "192.168.5.2/24", ipv6: "fd05::2/64", vxlan4: "10.60.0.64", vxlan6: "fd60::40" },
  c: { ipv4: "192.168.9.3/24", ipv6: "fd09::3/64", vxlan4: "10.60.0.128", vxlan6: "fd60::80" },
} as const;
const nodes = (...names: readonly (keyof typeof NODES)[]) =>
  names.map((name) => putFact(name, nodeFact(name, NODES[name])));
const BLOCKS = [
  putFact("a4", blockFact("10.60.0.0/26", "a")),
  putFact("a6", blockFact("fd60::/122", "a")),
  putFact("b4", blockFact("10.60.0.64/26", "b", { "10.60.0.70": "c" })),
  putFact("b6", blockFact("fd60::40/122", "b")),
  putFact("c4", blockFact("10.60.0.128/26", "c")),
];
const pools = (mode: Parameters<typeof poolFact>[2]) => [
  putFact("p4", poolFact("p4", "10.60.0.0/16", mode)),
  putFact("p6", poolFact("p6", "fd60::/64", mode === "ipip" ? "none" : mode)),
];
const CLUSTER: FactChanges = { nodes: nodes("a", "b", "c"), pools: pools("vxlan"), blocks: BLOCKS };

describe.skipIf(!canMakeNetns)(`NetworkKeeper${canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)"}`, () => {
  let host: TestNetns;
  let netns: Netns;
  const closing: (() => void)[] = [];

  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(async () => {
    host = area.create("node");
    for (const command of [
      "link add eth0 type veth peer name other",
      "link set eth0 up",
      "link set other up",
      "addr add 192.168.5.1/24 dev eth0",
      "addr add fd05::1/64 dev eth0 nodad",
    ]) {
      ip(command);
    }
    // The kernel sets addresses of IPv6 when it has time, and reports them then: not during the test.
    await pollUntil(() => sh("ip -6 route show table local").includes("fd05::1"), "the address of the host");
    netns = requireNetns(host.path);
  });
  afterEach(() => {
    for (const close of closing.splice(0)) close();
    closeNetns(netns);
  });

  const ip = (command: string) => runIn(host, ["ip", ...command.split(" ")]);
  const sh = (script: string) => runIn(host, ["sh", "-ec", script]);
  const open = (more: { readonly needsOwnChecksums?: boolean } = {}) => {
    const reports: string[] = [];
    const { kernel, ...opened } = runInNetns(netns, () => ({
      kernel: openKernelNetwork(ownSockets),
      guard: openKernelGuard(ownSockets),
    }));
    const guard: typeof opened.guard = {
      ...opened.guard,
      apply: (plan) => runInNetns(netns, () => opened.guard.apply(plan)),
    };
    let calls = 0;
    const counted: typeof kernel = {
      ...kernel,
      attempt(requests) {
        calls += 1;
        return kernel.attempt(requests);
      },
    };
    closing.push(
      () => kernel.close(),
      () => guard.close(),
    );
    const keeper = new NetworkKeeper({
      ...{ kernel: counted, guard, needsOwnChecksums: false, ...more },
      poolsOf: () => ["p4"],
      report: (message) => void reports.push(message),
      elapsed: () => performance.now(),
    });
    const planner = new RoutePlanner("a", { isEnabled: true, isBgpEnabled: false });
    const update = (changes: FactChanges) => {
      const change = planner.update(changes);
      return keeper.update(planner.plan, change);
    };
    return { keeper, guard, planner, reports, update, callsOf: (work: () => void) => countCalls(work, () => calls) };
  };
  const countCalls = (work: () => void, calls: () => number) => {
    const before = calls();
    work();
    return calls() - before;
  };
  /** Without what the kernel itself makes. */
  const routes = () =>
    sh("ip route show proto 86; ip -6 route show proto 86")
      .split("\n")
      .map((line) =>
        line
          .replace(/ (metric|proto|pref) \S+/g, "")
          .replace(/ dev lo| error \S+/g, "")
          .trim(),
      )
      .filter((line) => line !== "")
      .toSorted();
  const entries = () =>
    sh(`bridge fdb show dev ${DEVICE}; ip neigh show nud permanent dev ${DEVICE}; bridge fdb show dev ${DEVICE6}
      ip -6 neigh show nud permanent dev ${DEVICE6}`)
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
      .toSorted();

  const ROUTES = [
    `10.60.0.128/26 via 10.60.0.128 dev ${DEVICE} onlink`,
    `10.60.0.64/26 via 10.60.0.64 dev ${DEVICE} onlink`,
    `10.60.0.70 via 10.60.0.128 dev ${DEVICE} onlink`,
    "blackhole 10.60.0.0/26",
    "blackhole fd60::/122",
    `fd60::40/122 via fd60::40 dev ${DEVICE6} onlink`,
    `fd60::80 via fd60::80 dev ${DEVICE6} onlink`,
  ];
  const ENTRIES = [
    "10.60.0.128 lladdr 66:04:00:00:00:63 PERMANENT",
    "10.60.0.64 lladdr 66:04:00:00:00:62 PERMANENT",
    "66:04:00:00:00:62 dst 192.168.5.2 self permanent",
    "66:04:00:00:00:63 dst 192.168.9.3 self permanent",
    "66:06:00:00:00:62 dst fd05::2 self permanent",
    "66:06:00:00:00:63 dst fd09::3 self permanent",
    "fd60::40 lladdr 66:06:00:00:00:62 PERMANENT",
    "fd60::80 lladdr 66:06:00:00:00:63 PERMANENT",
  ];

  test("sets devices, addresses, entries, routes and the guard; another start changes nothing", () => {
    const { update, reports } = open();
    expect(update(CLUSTER)).toBe("settled");
    expect([routes(), entries(), reports]).toEqual([ROUTES, ENTRIES, []]);
    const devices = sh(
      `ip -d link show ${DEVICE}; ip -d link show ${DEVICE6}; ip addr show dev ${DEVICE}; ip addr show ${DEVICE6}`,
    );
    for (const part of [
      "mtu 1450",
      "66:04:00:00:00:61",
      "vxlan id 4096 local 192.168.5.1 dev eth0 srcport 0 0 dstport 4789 nolearning",
      "inet 10.60.0.0/32 scope global",
      "mtu 1430",
      "66:06:00:00:00:61",
      "vxlan id 4096 local fd05::1 dev eth0 srcport 0 0 dstport 4789 nolearning",
      "inet6 fd60::/128 scope global",
    ]) {
      expect(devices).toContain(part);
    }
    const guard = runIn(host, ["nft", "list", "table", "inet", "vendor_tunnel"]);
    for (const part of ["udp dport 4789 ip saddr != @senders4 counter", "ip6 saddr != @senders6", "192.168.9.3"]) {
      expect(guard).toContain(part);
    }
    const second = open();
    expect(second.callsOf(() => expect(second.update(CLUSTER)).toBe("settled"))).toBe(0);
    expect(runIn(host, ["nft", "list", "table", "inet", "vendor_tunnel"])).toBe(guard);
  });

  test("misses nothing that is deleted while it begins to watch the guard", () => {
    let count = 0;
    const openSocket: typeof ownSockets.openSocket = (...args) => {
      count += 1;
      // The first one is for requests.
      if (count > 1) sh("nft delete table inet vendor_tunnel 2>&1 || true");
      return ownSockets.openSocket(...args);
    };
    const guard = runInNetns(netns, () => openKernelGuard({ openSocket }));
    closing.push(() => guard.close());

    const guarded = { tunnels: new Set(["vxlan4"] as const), vxlanPorts: [4789] };
    runInNetns(netns, () => guard.apply({ ...guarded, senders: new Map(), isPartial: false }));

    expect(count).toBe(2);
    expect(sh("nft list tables").includes("vendor_tunnel") || guard.isSuspect()).toBe(true);
  });

  /** All events of the kernel until the function is called that is returned. */
  const collectEvents = () => {
    const stop = new AbortController();
    const seen: NetworkEvent[] = [];
    const events = watchNetwork({ kernel: ownSockets, signal: stop.signal, hasNeighbours: () => true })[
      Symbol.asyncIterator
    ]();
    const first = runInNetns(netns, () => ({ value: events.next() })).value;
    const reading = (async () => {
      for (let next = await first; !next.done; next = await events.next()) {
        if (next.value !== "lost") seen.push(...next.value);
      }
    })();
    return async () => {
      sh("ip route add 198.51.100.1 dev lo; ip route del 198.51.100.1");
      const isLast = (event: NetworkEvent) =>
        event.kind === "route" && formatPrefix(event.route.destination) === "198.51.100.1/32";
      await pollUntil(() => seen.some(isLast), "events");
      stop.abort();
      await reading;
      return seen;
    };
  };

  test("a new block costs one call of the kernel; a node that goes takes its routes and entries along", async () => {
    const { update, callsOf, keeper } = open();
    update(CLUSTER);
    /** What it does itself needs no comparison. */
    const followed = async (changes: FactChanges) => {
      const collected = collectEvents();
      expect(callsOf(() => update(changes))).toBe(1);
      const events = await collected();
      keeper.notice(events);
      expect([events.length > 3, keeper.isDoubtful]).toEqual([true, false]);
    };
    await followed({ blocks: [putFact("c6", blockFact("fd60::80/122", "c"))] });
    expect(routes()).toContain(`fd60::80/122 via fd60::80 dev ${DEVICE6} onlink`);
    await followed({ nodes: [deleteFact("c")] });
    expect(routes().join() + entries().join()).not.toMatch(/10\.60\.0\.128|fd60::80|192\.168\.9\.3|fd09/);
    expect(runIn(host, ["nft", "list", "table", "inet", "vendor_tunnel"])).not.toMatch(/192\.168\.9\.3|fd09::3/);
    await followed({ nodes: nodes("c"), blocks: [deleteFact("c6")] });
    expect([routes(), entries()]).toEqual([ROUTES, ENTRIES]);
  });

  test("a report of its own tunnel address needs no comparison, one of another address does", async () => {
    const { update, keeper } = open();
    update(CLUSTER);
    const noticed = async (command: string) => {
      const collected = collectEvents();
      ip(command);
      const events = await collected();
      keeper.notice(events);
      return [events.some(({ kind }) => kind === "address"), keeper.isDoubtful];
    };
    expect(await noticed(`addr change fd60::/128 dev ${DEVICE6} preferred_lft 1000 valid_lft 1000`)).toEqual([
      true,
      false,
    ]);
    expect(await noticed(`addr add fd60::7/128 dev ${DEVICE6} nodad`)).toEqual([true, true]);
  });

  test("a tunnel address that passes from one node to another keeps its entries", () => {
    const { update } = open();
    update(CLUSTER);
    const moved = [
      putFact("c", nodeFact("c", { ...NODES.c, vxlan4: "10.60.0.64" })),
      putFact("b", nodeFact("b", { ...NODES.b, vxlan4: "10.60.0.65" })),
    ];
    for (const change of moved) update({ nodes: [change] });
    expect(entries()).toContain("10.60.0.64 lladdr 66:04:00:00:00:63 PERMANENT");
    expect(entries()).toContain("10.60.0.65 lladdr 66:04:00:00:00:62 PERMANENT");
  });

  test("routes between tunnel and gateway are replaced, never missing; without pools all is gone", async () => {
    const { update } = open();
    update(CLUSTER);
    const collected = collectEvents();
    expect(update({ pools: pools("vxlan-cross-subnet") })).toBe("settled");
    expect(routes()).toContain("10.60.0.64/26 via 192.168.5.2 dev eth0");
    expect(routes()).toContain("fd60::40/122 via fd05::2 dev eth0");
    expect(routes()).toContain(`10.60.0.128/26 via 10.60.0.128 dev ${DEVICE} onlink`);
    expect(update({ pools: pools("vxlan") })).toBe("settled");
    expect(routes()).toEqual(ROUTES);
    const isLost = (event: NetworkEvent) =>
      event.kind === "route" && event.change === "delete" && [26, 122].includes(event.route.destination.length);
    expect((await collected()).filter(isLost)).toEqual([]);
    update({ pools: [deleteFact("p4"), deleteFact("p6")], blocks: BLOCKS.map(({ key }) => deleteFact(key)) });
    expect(routes()).toEqual([]);
    expect(sh("ip link; nft list tables")).not.toMatch(/vxlan|vendor_tunnel/);
  });

  test("a device of another VNI or port is created again; one of another address or MAC is changed", () => {
    const { update } = open();
    ip(`link add ${DEVICE} type vxlan id 7 local 192.168.5.1 dev eth0 dstport 4789 nolearning`);
    ip(
      `link add ${DEVICE6} address 02:00:00:00:00:01 type vxlan id 4096 local fd05::9 dev eth0 dstport 4789 nolearning`,
    );
    const index = () => JSON.parse(ip(`-j link show ${DEVICE6}`))[0].ifindex;
    const before = index();
    expect(update(CLUSTER)).toBe("settled");
    expect([routes(), entries(), index()]).toEqual([ROUTES, ENTRIES, before]);
  });

  test("the reverse path filter of a device is loose, whatever the default is, and stays so", () => {
    const { update, keeper } = open();
    const filter = `/proc/sys/net/ipv4/conf/${DEVICE}/rp_filter`;
    sh("echo 1 > /proc/sys/net/ipv4/conf/default/rp_filter");
    update(CLUSTER);
    expect(sh(`cat ${filter}`)).toBe("2\n");
    sh(`echo 1 > ${filter}`);
    keeper.distrust();
    expect([keeper.look(), sh(`cat ${filter}`)]).toEqual(["settled", "2\n"]);
  });

  test("another port and another VNI make the devices again, with their entries, and guard the new port", () => {
    const { update, reports } = open();
    update(CLUSTER);
    const index = () => JSON.parse(sh(`ip -j link show ${DEVICE}`))[0].ifindex;
    const former = index();
    const settings = { isEnabled: true, isBgpEnabled: false, vxlan: { port: 8472, id: 77 } };
    expect(update({ settings })).toBe("settled");
    const { linkinfo } = JSON.parse(sh(`ip -j -d link show ${DEVICE}`))[0];
    expect(linkinfo.info_data).toMatchObject({ id: 77, port: 8472 });
    expect([routes(), entries()]).toEqual([ROUTES, ENTRIES]);
    expect(index()).not.toEqual(former);
    const rules = sh("nft list table inet vendor_tunnel");
    expect([rules.includes("udp dport 8472"), rules.includes("4789")]).toEqual([true, false]);
    expect(update({ settings: { isEnabled: true, isBgpEnabled: false } })).toBe("settled");
    expect(sh("nft list table inet vendor_tunnel")).not.toContain("8472");
    expect(reports).not.toContainEqual(expect.stringContaining("Cannot"));
  });

  test("checksum offload is turned off if the kernel needs it", () => {
    const { update } = open({ needsOwnChecksums: true });
    runInNetns(netns, () => {
      update(CLUSTER);
      expect([readChecksumOffload(DEVICE), readChecksumOffload(DEVICE6)]).toEqual([false, false]);
    });
  });

  test("a kernel without IPIP, a missing address and a taken name are problems that are reported once", () => {
    const { update, reports, keeper } = open();
    ip(`link add ${DEVICE6} type veth peer name taken`);
    const ipip = { ...CLUSTER, nodes: [putFact("a", nodeFact("a", { ...NODES.a, ipip: "10.60.0.1" })), ...nodes("b")] };
    update({ ...ipip, pools: pools("ipip") });
    const hasIpip = sh("ip link").includes("tunl0");
    const missing =
      'Cannot set up the IPIP tunnel that pool "p4" needs: the kernel of this host has no IPIP (module "ipip")';
    expect(reports).toEqual(hasIpip ? [] : [missing]);
    for (const _again of [1, 2]) {
      keeper.distrust();
      keeper.look();
    }
    expect(reports.length).toBe(hasIpip ? 0 : 1);
    update({ pools: pools("vxlan") });
    expect(reports.at(-1)).toContain(`another interface has the name "${DEVICE6}"`);
    update({ nodes: [putFact("a", nodeFact("a", { ...NODES.a, ipv4: "192.168.7.7/24" }))] });
    expect(reports.at(-1)).toContain("no interface of this host has the address 192.168.7.7");
    expect(routes()).not.toContain("10.60.0.64/26");
  });

  test("routes of other programs are never touched, and a clash is named once", () => {
    const { update, reports, keeper } = open();
    const foreign = [
      "10.60.0.64/26 via 192.168.5.9 dev eth0 proto bird",
      "10.61.0.0/16 via 192.168.5.9 dev eth0 proto static",
      "10.60.0.9 dev other proto 86 scope link",
    ];
    for (const route of foreign) ip(`route add ${route}`);
    expect(update(CLUSTER)).toBe("unsettled");
    expect(reports).toEqual([
      "Cannot set the route to 10.60.0.64/26: another program has one (unicast via 192.168.5.9, protocol 12)",
    ]);
    keeper.distrust();
    keeper.look();
    const present = ip("route");
    for (const route of foreign) expect(present).toContain(route);
    expect(reports.length).toBe(1);
    update({ blocks: [putFact("b4", blockFact("10.60.0.64/26", "c"))] });
    expect(ip("route")).toContain(foreign[0] ?? "");
    ip("route del 10.60.0.64/26");
    keeper.distrust();
    expect(keeper.look()).toBe("settled");
    expect(routes()).toContain(`10.60.0.64/26 via 10.60.0.128 dev ${DEVICE} onlink`);
  });

  test("a start with unreadable records adds and removes nothing as stale; what is readable again counts", () => {
    open().update(CLUSTER);
    const senders = () => sh("nft list table inet vendor_tunnel").replace(/packets \d+ bytes \d+/g, "");
    const before = senders();
    const { update, reports } = open();
    const unreadable = (key: string) => ({ kind: "unreadable", key }) as const;
    update({
      nodes: [...nodes("a", "b"), unreadable("c")],
      pools: [unreadable("p4"), ...pools("vxlan").slice(1)],
      blocks: [unreadable("c4"), ...BLOCKS.filter(({ key }) => key !== "c4")],
    });
    expect([routes(), entries(), senders()]).toEqual([ROUTES, ENTRIES, before]);

    update({ blocks: [putFact("b7", blockFact("fd60::100/122", "b"))] });
    const added = `fd60::100/122 via fd60::40 dev ${DEVICE6} onlink`;
    expect(routes()).toEqual([...ROUTES, added].toSorted());
    update({ nodes: [deleteFact("c")], blocks: [deleteFact("c4")] });
    expect(routes()).toEqual([...ROUTES, added].toSorted());
    update({ pools: pools("vxlan") });
    const ofC = (line: string) => /10\.60\.0\.(128|70)|fd60::80|192\.168\.9\.3|:63/.test(line);
    expect(routes()).toEqual([...ROUTES.filter((line) => !ofC(line)), added].toSorted());
    expect(entries()).toEqual(ENTRIES.filter((line) => !ofC(line) && !line.includes("fd09::3")));
    expect(senders()).not.toContain("192.168.9.3");
    expect(reports.filter((line) => !line.startsWith("Removed stale"))).toEqual([]);
  });

  test("routes stay while their device or link cannot be prepared", () => {
    const { update, keeper } = open();
    update({ ...CLUSTER, pools: pools("vxlan-cross-subnet") });
    const before = routes();
    expect(before).toContain("10.60.0.64/26 via 192.168.5.2 dev eth0");
    // The address of the node has gone for a moment; the kernel removes only routes of the subnet with it.
    ip("addr add 192.168.6.1/24 dev eth0");
    ip("route replace 10.60.0.64/26 via 192.168.6.2 dev eth0 proto 86");
    ip("addr del 192.168.5.1/24 dev eth0");
    keeper.distrust();
    expect(keeper.look()).toBe("unsettled");
    expect(routes()).toContain("10.60.0.64/26 via 192.168.6.2 dev eth0");
    expect(routes()).toContain(`10.60.0.128/26 via 10.60.0.128 dev ${DEVICE} onlink`);

    ip("addr add 192.168.5.1/24 dev eth0");
    keeper.distrust();
    expect(keeper.look()).toBe("settled");
    expect(routes()).toEqual(before);
  });

  test("the route of a pod whose address was at another node stays, and is not a problem", () => {
    const { update, reports, keeper } = open();
    expect(update(CLUSTER)).toBe("settled");
    const isOfPod = () => routes().some((route) => route.startsWith("10.60.0.70 dev other"));
    ip("route replace 10.60.0.70 dev other proto 86 scope link");
    keeper.distrust();
    expect(keeper.look()).toBe("settled");
    expect(isOfPod()).toBe(true);

    // The plan follows; on its way it may name another node first.
    update({ blocks: [putFact("b4", blockFact("10.60.0.64/26", "b", { "10.60.0.70": "a" }))] });
    expect(isOfPod()).toBe(true);
    ip("route del 10.60.0.70");
    update({ blocks: [putFact("b4", blockFact("10.60.0.64/26", "b", { "10.60.0.70": "c" }))] });
    expect(routes()).toEqual(ROUTES);
    expect(reports).toEqual([]);
  });

  describe("followNetwork()", () => {
    const follow = (opened: ReturnType<typeof open>) => {
      const stop = new AbortController();
      const { keeper, guard, planner } = opened;
      async function* facts(...changes: readonly FactChanges[]): AsyncGenerator<FactChanges> {
        yield* changes;
      }
      const { blocks, ...resources } = CLUSTER;
      const events = (signal: AbortSignal) => {
        const iterator = watchNetwork({
          kernel: ownSockets,
          signal,
          hasNeighbours: (index) => keeper.hasNeighbours(index),
        });
        const first = runInNetns(netns, () => ({ value: iterator.next() })).value;
        return (async function* () {
          for (let next = await first; !next.done; next = await iterator.next()) yield next.value;
        })();
      };
      const running = followNetwork([facts(resources), facts({ blocks: blocks ?? [] })], {
        ...{ planner, keeper, events, isGuardSuspect: () => guard.isSuspect(), planned: () => {}, applied: () => {} },
        ...{ report: (message) => void opened.reports.push(message), wait: SYSTEM_CLOCK.wait, signal: stop.signal },
      });
      return async () => {
        stop.abort();
        await running;
      };
    };
    const intact = () => Bun.deepEquals([routes(), entries()], [ROUTES, ENTRIES]);

    test("restores within a second whatever was deleted or changed by hand, and follows the MTU", async () => {
      const opened = open();
      const end = follow(opened);
      await pollUntil(intact, "the first state", SOON);
      for (const damage of [
        "ip route flush proto 86; ip -6 route flush proto 86",
        `ip route replace 10.60.0.64/26 via 192.168.5.7; ip -6 route replace blackhole fd60::40/122`,
        `ip route replace blackhole 10.60.0.128/26; ip route add 10.60.9.0/26 via 192.168.5.7 proto 86`,
        `bridge fdb del 66:04:00:00:00:62 dev ${DEVICE} dst 192.168.5.2`,
        `bridge fdb replace 66:04:00:00:00:62 dev ${DEVICE} dst 192.168.5.7`,
        `bridge fdb append 66:06:00:00:00:62 dev ${DEVICE6} dst fd05::7; ip neigh flush dev ${DEVICE6} nud permanent`,
        `ip neigh replace 10.60.0.64 lladdr 02:00:00:00:00:09 dev ${DEVICE} nud permanent`,
        `ip neigh add 10.60.0.99 lladdr 02:00:00:00:00:09 dev ${DEVICE} nud permanent`,
        `ip addr flush dev ${DEVICE}; ip addr add 10.60.0.33/32 dev ${DEVICE}`,
        `ip link set ${DEVICE} down; ip link set ${DEVICE6} down`,
        `ip link del ${DEVICE}; ip link del ${DEVICE6}`,
        `ip link set ${DEVICE} mtu 1300 address 02:00:00:00:00:01`,
        "ip link set eth0 down; ip link set eth0 up; ip addr add fd05::1/64 dev eth0 nodad",
      ]) {
        sh(damage);
        await pollUntil(intact, `restored after: ${damage}`, SOON);
      }
      await pollUntil(() => sh(`ip addr show ${DEVICE}`).includes("inet 10.60.0.0/32"), "the address", SOON);
      expect(sh(`ip link show ${DEVICE}`)).toContain("mtu 1450");
      ip("link set eth0 mtu 1400");
      await pollUntil(() => sh(`ip link show ${DEVICE6}`).includes("mtu 1330"), "the MTU", SOON);
      runIn(host, ["nft", "delete", "table", "inet", "vendor_tunnel"]);
      await pollUntil(() => sh("nft list tables").includes("vendor_tunnel"), "the guard", SOON);
      expect(opened.reports.some((line) => line.startsWith("Restored routes to other nodes: 10.60.0."))).toBe(true);
      await end();
    });
  });
});

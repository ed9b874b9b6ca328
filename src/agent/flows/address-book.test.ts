import { beforeEach, describe, expect, test } from "bun:test";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { type EndName, serviceKey } from "../../flows/collector-messages.ts";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { containerLabels } from "../../model/container-labels.ts";
import { globalNetworkSet } from "../../model/global-network-set.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { networkSet } from "../../model/network-set.ts";
import { node } from "../../model/node.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { AddressBook, type NamedChange } from "./address-book.ts";

const NAMESPACE_LABEL = `${identity.labelPrefix}namespace`;

interface PodOptions {
  readonly node?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly generateName?: string;
  readonly phase?: string;
}

function pod(name: string, addresses: readonly string[], { phase, ...options }: PodOptions = {}) {
  const place = options.node ?? "here";
  const { labels, generateName } = options;
  const made = workloadEndpoint.make(
    {
      ...{ name: `${place}-k8s-${name}-eth0`, namespace: "shop" },
      labels: { ...labels, [NAMESPACE_LABEL]: "shop" },
      ...(generateName === undefined ? {} : { generateName }),
    },
    { node: place, ipNetworks: [...addresses] },
  );
  return phase === undefined ? made : { ...made, status: { phase } };
}

let changed: string[] = [];
let now = 0;
let book = emptyBook();
beforeEach(() => {
  [changed, now] = [[], 0];
  book = emptyBook();
});

function emptyBook(mostAsked = 100): AddressBook {
  return new AddressBook({ node: "here", elapsed: () => now, changed: (key) => changed.push(key), mostAsked });
}

type Values<Of extends NamedChange["of"]> =
  Extract<NamedChange, { readonly of: Of }>["change"] extends RecordChange<infer Value> ? Value : never;

/** Replaces the first value by the second one. */
function change<Of extends NamedChange["of"]>(
  of: Of,
  previous: Values<Of> | undefined,
  value: Values<Of> | undefined,
): void {
  const made =
    value === undefined ? { kind: "delete", key: "key", previous } : { kind: "put", key: "key", value, previous };
  book.take({ of, change: made } as NamedChange);
}

function ask(...keys: readonly string[]): void {
  for (const key of keys) book.ask(key);
}

describe("the name of a workload", () => {
  test("is that of its pod, with namespace, owner, labels and node", () => {
    const web = pod("web--6d4c--x", ["10.0.0.1/32", "fd00::0:1/128"], {
      ...{ labels: { app: "web", "pod-template-hash": "6d4c" }, generateName: "web-6d4c-" },
    });
    change("endpoints", undefined, web);

    const name: EndName = {
      ...{ kind: "pod", namespace: "shop", name: "web-6d4c-x", node: "here", isLocal: true },
      ...{ owner: { kind: "Deployment", name: "web" }, labels: { app: "web", "pod-template-hash": "6d4c" } },
      endpoint: JSON.stringify(web),
    };
    expect(["10.0.0.1", "fd00::1"].map((address) => book.nameOf(address))).toEqual([name, name]);
  });

  test("is that of its container, with the labels that the container inherits", () => {
    const web = workloadEndpoint.make(
      { name: "here-cni-0123456789abcdef-eth0", namespace: "default", labels: { a: "1", b: "1" } },
      { node: "here", orchestrator: "cni", workload: "web", ipNetworks: ["10.0.0.1/32"] },
    );
    change("endpoints", undefined, web);
    expect(book.nameOf("10.0.0.1")).toMatchObject({ kind: "container", name: "web", labels: { a: "1", b: "1" } });
    expect(book.nameOf("10.0.0.1")).not.toHaveProperty("namespace");

    changed = [];
    change(
      "containerLabels",
      undefined,
      containerLabels.make({ name: "web" }, { node: "here", container: "web", labels: { b: "2" } }),
    );
    expect([book.nameOf("10.0.0.1").labels, changed]).toEqual([{ a: "1", b: "2" }, ["10.0.0.1"]]);
  });

  test("is the short ID of a container whose runtime gives no name", () => {
    const meta = { name: "far-cni-0123456789abcdef-eth0", namespace: "default" };
    change("endpoints", undefined, workloadEndpoint.make(meta, { node: "far", ipNetworks: ["10.0.0.1/32"] }));

    expect(book.nameOf("10.0.0.1")).toMatchObject({ kind: "container", name: "0123456789ab", node: "far" });
    expect(book.nameOf("10.0.0.1")).not.toHaveProperty("isLocal");
  });

  test("of several with the address, one of this node comes first, and one that has ended last", () => {
    const [far, ended, local] = [
      pod("far", ["10.0.0.1/32"], { node: "far" }),
      pod("ended", ["10.0.0.1/32"], { phase: "Succeeded" }),
      pod("local", ["10.0.0.1/32"]),
    ];
    change("endpoints", undefined, ended);
    expect(book.nameOf("10.0.0.1").name).toBe("ended");
    change("endpoints", undefined, far);
    expect(book.nameOf("10.0.0.1").name).toBe("far");
    change("endpoints", undefined, local);
    expect(book.nameOf("10.0.0.1").name).toBe("local");
    change("endpoints", local, undefined);
    expect(book.nameOf("10.0.0.1").name).toBe("far");
  });

  test("stays for some seconds after it is gone, unless another has the address", () => {
    const [before, after] = [pod("before", ["10.0.0.1/32", "10.0.0.2/32"]), pod("after", ["10.0.0.1/32"])];
    change("endpoints", undefined, before);
    change("endpoints", before, undefined);
    change("endpoints", undefined, after);
    expect(["10.0.0.1", "10.0.0.2"].map((address) => book.nameOf(address).name)).toEqual(["after", "before"]);

    [changed, now] = [[], 9_999];
    book.expire();
    expect([book.nameOf("10.0.0.2").name, changed]).toEqual(["before", []]);
    now = 10_000;
    book.expire();
    expect([book.nameOf("10.0.0.2"), changed]).toEqual([{ kind: "outside" }, ["10.0.0.2"]]);
  });

  test("leads from a floating address too", () => {
    const web = pod("web", ["10.0.0.1/32"]);
    const spec = { ...web.spec, ipNATs: [{ internalIP: "10.0.0.1", externalIP: "192.0.2.80" }] };
    change("endpoints", undefined, { ...web, spec });

    expect(book.nameOf("192.0.2.80").name).toBe("web");
  });
});

describe("the name of a host", () => {
  const one = node.make(
    { name: "one" },
    {
      bgp: { ipv4Address: "192.0.2.1/24", ipv4IPIPTunnelAddr: "10.0.1.1" },
      ...{ ipv4VXLANTunnelAddr: "10.0.1.2", ipv6VXLANTunnelAddr: "fd00::2" },
      addresses: [{ address: "198.51.100.1", type: "InternalIP" }, { address: "192.0.2.1/24" }],
    },
  );
  const all = ["192.0.2.1", "10.0.1.1", "10.0.1.2", "fd00::2", "198.51.100.1"];

  test("is that of its node, at each of its addresses", () => {
    change("nodes", undefined, one);
    expect(all.map((address) => book.nameOf(address))).toEqual(
      all.map(() => ({ kind: "host", name: "one", node: "one" })),
    );
    change("nodes", one, undefined);
    expect(all.map((address) => book.nameOf(address).kind)).toEqual(all.map(() => "outside"));
  });

  test("is local at every address that an interface of this host has", () => {
    const own = ["10.88.0.1", "fe80::1"];
    book.setOwnAddresses(own.map((text) => parseAddress(text) ?? { family: 4, value: 0n }));

    expect(book.nameOf("fe80::1")).toEqual({ kind: "host", name: "here", node: "here", isLocal: true });
    expect([book.localAddresses, changed]).toEqual([own, own]);
    changed = [];
    book.setOwnAddresses([]);
    expect([book.localAddresses, changed]).toEqual([[], own]);
  });

  test("has the labels of the host endpoint with the address, or with all interfaces", () => {
    const eth0 = hostEndpoint.make(
      { name: "one-eth0", labels: { card: "eth0" } },
      { node: "one", expectedIPs: ["203.0.113.1"] },
    );
    const every = hostEndpoint.make({ name: "one-all", labels: { card: "all" } }, { node: "one", interfaceName: "*" });
    change("nodes", undefined, one);
    change("hostEndpoints", undefined, eth0);
    ask("192.0.2.1", "203.0.113.1");
    change("hostEndpoints", undefined, every);

    expect(book.nameOf("203.0.113.1")).toMatchObject({ kind: "host", name: "one", labels: { card: "eth0" } });
    expect(book.nameOf("192.0.2.1")).toMatchObject({ labels: { card: "all" } });
    expect(changed).toContain("192.0.2.1");
    change("hostEndpoints", every, undefined);
    expect(book.nameOf("192.0.2.1")).not.toHaveProperty("labels");
  });

  test("gives way to a workload with the address", () => {
    change("nodes", undefined, one);
    change("endpoints", undefined, pod("web", ["192.0.2.1/32"]));

    expect(book.nameOf("192.0.2.1").kind).toBe("pod");
  });
});

describe("the name of a Service", () => {
  const web = {
    ...{ namespace: "shop", name: "web", addresses: ["10.96.0.9", "fd00::9"] },
    ports: [{ protocol: 6, port: 80, nodePort: 30_080 }],
  };
  const keys = [serviceKey("10.96.0.9", 6, 80), serviceKey("fd00::9", 6, 80), serviceKey("192.0.2.1", 6, 30_080)];

  beforeEach(() => {
    change("nodes", undefined, node.make({ name: "one" }, { bgp: { ipv4Address: "192.0.2.1/24" } }));
  });

  test("is found by address, protocol and port, and by its port on every node", () => {
    ask(...keys);
    change("services", undefined, web);

    expect(keys.map((key) => book.nameOf(key))).toEqual(
      keys.map(() => ({ kind: "service", namespace: "shop", name: "web" })),
    );
    expect(changed.toSorted()).toEqual(keys.toSorted());
    change("services", web, undefined);
    expect(keys.map((key) => book.nameOf(key).kind)).toEqual(["outside", "outside", "host"]);
  });

  test("is not that of another port or protocol: then it is who has the address", () => {
    change("services", undefined, web);

    expect(book.nameOf(serviceKey("10.96.0.9", 17, 80)).kind).toBe("outside");
    expect(book.nameOf(serviceKey("192.0.2.1", 6, 80))).toMatchObject({ kind: "host", name: "one" });
    // A port of nodes is not one of others.
    expect(book.nameOf(serviceKey("198.51.100.1", 6, 30_080)).kind).toBe("outside");
  });
});

describe("the name of a network set", () => {
  const wide = globalNetworkSet.make(
    { name: "wide", labels: { of: "wide" } },
    { nets: ["198.51.0.0/16", "fd01::/16"] },
  );
  const narrow = networkSet.make({ name: "narrow", namespace: "shop" }, { nets: ["198.51.100.0/24", "203.0.113.9"] });

  test("is that of the most specific network", () => {
    change("globalNetworkSets", undefined, wide);
    change("networkSets", undefined, narrow);

    expect(book.nameOf("198.51.100.7")).toEqual({ kind: "network set", namespace: "shop", name: "narrow" });
    expect(book.nameOf("198.51.7.7")).toEqual({ kind: "network set", name: "wide", labels: { of: "wide" } });
    expect(book.nameOf("203.0.113.9").name).toBe("narrow");
    expect(book.nameOf("fd01::5").name).toBe("wide");
    expect(book.nameOf("203.0.113.8")).toEqual({ kind: "outside" });
  });

  test("is told again when sets change, to those that asked for an address in them", () => {
    ask("198.51.100.7", "203.0.113.8");
    change("networkSets", undefined, narrow);
    expect(changed).toEqual(["198.51.100.7"]);
    book.forget("198.51.100.7");
    change("networkSets", narrow, undefined);
    expect([changed, book.nameOf("198.51.100.7").kind]).toEqual([["198.51.100.7"], "outside"]);
  });
});

describe("changes", () => {
  test("are told of addresses that were asked for, and of all of this node", () => {
    ask("10.0.0.1");
    const [far, other, local] = [
      pod("far", ["10.0.0.1/32"], { node: "far" }),
      pod("other", ["10.0.0.2/32"], { node: "far" }),
      pod("local", ["10.0.0.3/32"]),
    ];
    for (const each of [far, other, local]) change("endpoints", undefined, each);
    expect([changed, book.localAddresses]).toEqual([["10.0.0.1", "10.0.0.3"], ["10.0.0.3"]]);
  });

  test("are told of as many addresses as may be asked for", () => {
    book = emptyBook(1);
    ask("10.0.0.1", "10.0.0.2", "10.0.0.1");
    for (const address of ["10.0.0.1", "10.0.0.2"])
      change("endpoints", undefined, pod(address, [address], { node: "far" }));
    expect(changed).toEqual(["10.0.0.1"]);
    book.forget("10.0.0.1");
    ask("10.0.0.2");
    change("endpoints", undefined, pod("more", ["10.0.0.2/32"], { node: "far" }));
    expect(changed).toEqual(["10.0.0.1", "10.0.0.2"]);
  });

  test("in any order lead to the same names as the last records alone", () => {
    let seed = 1;
    const below = (limit: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % limit;
    };
    const current = new Map<string, ReturnType<typeof pod>>();
    for (let step = 0; step < 5_000; step += 1) {
      const name = `pod${below(20)}`;
      const next =
        below(4) === 0
          ? undefined
          : pod(name, [`10.0.0.${below(10)}/32`, `fd00::${below(10)}`], { node: below(2) === 0 ? "here" : "far" });
      change("endpoints", current.get(name), next);
      if (next === undefined) current.delete(name);
      else current.set(name, next);
    }
    now = 1_000_000;
    book.expire();
    const changedBook = book;
    book = emptyBook();
    for (const each of current.values()) change("endpoints", undefined, each);
    const names = (of: AddressBook) =>
      Array.from({ length: 10 }, (_, index) => [
        of.nameOf(`10.0.0.${index}`),
        of.nameOf(`fd00::${index === 0 ? "" : index}`),
      ]);
    expect(names(changedBook)).toEqual(names(book));
    expect(changedBook.localAddresses.toSorted()).toEqual(book.localAddresses.toSorted());
  });
});

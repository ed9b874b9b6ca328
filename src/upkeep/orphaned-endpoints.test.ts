import { beforeEach, describe, expect, test } from "bun:test";
import { runInside } from "../../test/support/admin-context.ts";
import { means, poolChange, request, seed, textsOf } from "../../test/support/ipam.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { readAllEntries } from "../datastore/pages.ts";
import { API_VERSION } from "../identity.ts";
import { openAllocator } from "../ipam/allocator.ts";
import { formatMark } from "../ipam/link-mark.ts";
import { NETWORK_ANNOTATION } from "../model/endpoint-labels.ts";
import { nameInKey } from "../model/keys.ts";
import { ENDPOINT } from "../model/kinds.ts";
import { workloadEndpoint } from "../model/workload-endpoint.ts";
import { workloadEndpointName } from "../model/workload-endpoint-name.ts";
import { endpointChanges } from "../plugin/endpoint.ts";
import { OrphanedEndpoints } from "./orphaned-endpoints.ts";

const MINUTES = 60_000;
const MACHINE = "aa".repeat(32);
const REGISTERED = new Date("2026-01-02T03:00:00Z");
const CREATED = "2026-01-02T03:04:05Z";

let store = openMemory();
let elapsed = 0;
let left = new OrphanedEndpoints(store, { elapsed: () => elapsed, machineIdentity: async () => MACHINE });
beforeEach(async () => {
  store = openMemory();
  elapsed = 0;
  left = new OrphanedEndpoints(store, { elapsed: () => elapsed, machineIdentity: async () => MACHINE });
  await seed(store, poolChange("blue", "10.0.0.0/16", { blockSize: 30 }));
  const registered = await runInside("node register --name node-1".split(" "), {
    ...{ store, now: REGISTERED, machineIdentity: MACHINE },
  });
  expect(registered.code).toBe(0);
});

interface Written {
  readonly node?: string;
  readonly address?: string;
  readonly created?: string;
  /** Of an endpoint that an ADD has written. */
  readonly network?: string;
}

function endpointOf(containerID: string, { node = "node-1", address = "10.0.9.9", created, network }: Written) {
  const named = workloadEndpointName({ node, orchestrator: "cni", workload: containerID, endpoint: "eth0" });
  const name = named.ok ? named.name : "";
  const annotations = network === undefined ? {} : { [NETWORK_ANNOTATION]: network };
  const metadata = { name, namespace: "default", creationTimestamp: created, annotations };
  const spec = { orchestrator: "cni", node, containerID, endpoint: "eth0", ipNetworks: [`${address}/32`] };
  const value = JSON.stringify({ apiVersion: API_VERSION, kind: "WorkloadEndpoint", metadata, spec });
  return { kind: "put", key: ENDPOINT.key({ namespace: "default", name }), value } as const;
}

const write = (containerID: string, written: Written = {}) =>
  seed(store, endpointOf(containerID, { created: CREATED, network: "net", ...written }));

/** A pass of the agent, so many minutes after the one before. Returns the containers whose endpoints were deleted. */
async function pass(
  minutes: number,
  found: { readonly links?: readonly string[]; readonly routed?: readonly [string, string] } = {},
) {
  elapsed += minutes * MINUTES;
  const entries = await readAllEntries(store, ENDPOINT.prefix());
  const revisions = new Map(entries.map(({ key, revision }) => [key, revision]));
  const marks = found.links?.map((containerId) => formatMark({ network: "net", containerId, ifname: "eth0" }));
  const removed: string[] = [];
  await left.remove(
    {
      [Symbol.iterator]: () =>
        entries.map(({ key, value }) => [key, workloadEndpoint.read(value, key)] as const).values(),
      revisionOf: (key) => revisions.get(key),
    },
    {
      ...{ node: "node-1", isEmbedded: false },
      links: { marks: new Set(marks), routed: new Map(found.routed === undefined ? [] : [found.routed]) },
    },
    { removed: (key) => removed.push(key), signal: new AbortController().signal },
  );
  const remaining = (await readAllEntries(store, ENDPOINT.prefix())).length;
  expect(remaining).toBe(entries.length - removed.length);
  return removed.map((key) => nameInKey(key).split("-cni-")[1]?.split("-")[0]);
}

describe("OrphanedEndpoints", () => {
  test("deletes an endpoint that the host shows no sign of for longer than any ADD takes", async () => {
    await write("gone");
    expect([await pass(0), await pass(4), await pass(1), await pass(5)]).toEqual([[], [], ["gone"], []]);
  });

  test("deletes one whose address another container has by now", async () => {
    await write("gone");
    const other = { routed: ["10.0.9.9", "net/other/eth0"] } as const;
    expect([await pass(0, other), await pass(5, other)]).toEqual([[], ["gone"]]);
  });

  test.each([
    ["whose container has its link", {}, { links: ["one"] }],
    ["to whose address a route leads", { address: "10.0.9.9" }, { routed: ["10.0.9.9", ""] }],
    [
      "to whose address a route leads, over a renamed link",
      { address: "10.0.9.9" },
      { routed: ["10.0.9.9", "uplink"] },
    ],
    ["of another node", { node: "node-2" }, {}],
    ["that no ADD has written", { network: undefined }, {}],
    ["from before this machine registered the node", { created: "2026-01-02T02:59:59Z" }, {}],
    ["without a time", { created: undefined }, {}],
  ] as const)("keeps one %s", async (_, written, found) => {
    await write("one", written as Written);
    expect([await pass(0, found), await pass(5, found), await pass(5, found)]).toEqual([[], [], []]);
  });

  test("leaves a container of which IPAM holds an address to the search for leaks", async () => {
    const owner = { network: "net", interface: "eth0", node: "node-1" } as const;
    const [address = ""] = textsOf(await openAllocator(store, means()).assign(request("net.held", owner)));
    await write("held", { address });
    expect([await pass(0), await pass(5)]).toEqual([[], []]);
  });

  test("begins to count again when it is written again, or when the link was there", async () => {
    await write("again");
    await pass(0);
    await write("again", { address: "10.0.9.10" });
    expect([await pass(5), await pass(4, { links: ["again"] }), await pass(1), await pass(5)]).toEqual([
      [],
      [],
      [],
      ["again"],
    ]);
  });

  test("deletes nothing that an ADD has written since it was judged, not even with the same content", async () => {
    await write("back");
    await pass(0);
    const entries = await readAllEntries(store, ENDPOINT.prefix());
    const [entry] = entries;
    const wanted = workloadEndpoint.read(entry?.value ?? "", entry?.key ?? "");
    const repeated = { wanted, labels: "of the pod", whenEqual: "write" } as const;
    const written = await store.commit(endpointChanges(repeated, entry?.key ?? "", entry));
    elapsed += 5 * MINUTES;
    const removed: string[] = [];
    await left.remove(
      { [Symbol.iterator]: () => [[entry?.key ?? "", wanted] as const].values(), revisionOf: () => entry?.revision },
      { node: "node-1", isEmbedded: false, links: { marks: new Set(), routed: new Map() } },
      { removed: (key) => removed.push(key), signal: new AbortController().signal },
    );
    expect([written.ok, removed, (await readAllEntries(store, ENDPOINT.prefix())).length]).toEqual([true, [], 1]);
  });

  test("fails if another machine has registered the node", async () => {
    await write("gone");
    await pass(0);
    const forced = "node register --name node-1 --force".split(" ");
    await runInside(forced, { store, now: REGISTERED, machineIdentity: "bb".repeat(32) });
    await expect(pass(5)).rejects.toThrow("another machine has registered it");
  });
});

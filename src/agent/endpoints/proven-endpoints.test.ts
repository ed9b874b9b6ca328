import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { address, prefix } from "../../../test/support/ip.ts";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { productMapping } from "../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { type Replica, startReplica } from "../../datastore/replica.ts";
import { blockSize, ordinalOf } from "../../ip/block.ts";
import type { AttachmentRecord } from "../../ipam/attachment-record.ts";
import type { RefusedClaims } from "../../ipam/refused-claims.ts";
import { OwnerNumbers } from "../../model/block-owners.ts";
import { hostInterfaceName } from "../../model/host-interface-name.ts";
import { writeBlock } from "../../model/ipam-block.ts";
import { blockKey } from "../../model/keys.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { recordedAnnotation } from "../../model/recorded-annotations.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { followedEndpoints } from "../../policy/followed-endpoints.ts";
import { routedBlockKinds } from "../../routing/inputs.ts";
import { ProvenEndpoints } from "./proven-endpoints.ts";

const NODE = "n1";
const POD_IPS = recordedAnnotation("podIPs");
const BLOCK = prefix("10.0.0.4/30");

let api: FakeApi;
let store: Datastore;
let stop: AbortController;
let running: Promise<unknown>;
let endpoints: Replica<{ readonly endpoints: WorkloadEndpoint }>;
let elapsed: number;
const [attachments, published, reports] = [
  new Map<string, AttachmentRecord>(),
  [] as (readonly RefusedClaims[])[],
  [] as string[],
];

beforeEach(() => {
  api = startFakeApi();
  const client = api.connect();
  store = openKubeStore({ api: client, mappings: productMapping(() => "m"), close: () => client.close() });
  elapsed = 0;
  attachments.clear();
  for (const list of [published, reports]) list.length = 0;
});
afterEach(async () => {
  stop.abort();
  await running;
  await store.close();
});

function start(): ProvenEndpoints {
  stop = new AbortController();
  const { signal } = stop;
  const numbers = new OwnerNumbers(7n);
  const proven = new ProvenEndpoints({
    ...{ node: NODE, numbers, allowsFloating: true, elapsed: () => elapsed },
    pools: () => [{ prefix: prefix("10.0.0.0/16"), blockLength: BLOCK.length, createdAt: "" }],
    attachmentOf: (name) => attachments.get(name),
    report: (message) => void reports.push(message),
    decided: () => {},
    publish: (refused) => void published.push(refused),
  });
  const watches = "per kind";
  const blocks = startReplica(store, routedBlockKinds(numbers), { signal, watches });
  const kinds = { endpoints: followedEndpoints(NODE) };
  endpoints = startReplica(store, kinds, { signal, watches, refinements: { endpoints: proven.refinement } });
  const refresh = (keys: Iterable<string>) => endpoints.refresh("endpoints", keys);
  const work = proven.run(blocks.updates(signal), { refresh, wait: SYSTEM_CLOCK.wait, signal });
  running = Promise.all([work, endpoints.ended, blocks.ended]);
  return proven;
}

async function make(path: string, object: object): Promise<void> {
  const { status } = await api.connect().request({ method: "POST", path, body: JSON.stringify(object) });
  expect(status).toBe(201);
}

function makePod({ name = "web", node = NODE, podIPs = "", reported = [] as readonly string[] }): Promise<void> {
  return make("/api/v1/namespaces/shop/pods", {
    metadata: { name, namespace: "shop", annotations: { [POD_IPS]: podIPs } },
    spec: { nodeName: node, containers: [] },
    status: { podIPs: reported.map((ip) => ({ ip })) },
  });
}

/** Until the agent has seen it. */
async function annotate(name: string, podIPs: string): Promise<void> {
  const path = `/api/v1/namespaces/shop/pods/${name}`;
  const metadata = { annotations: { [POD_IPS]: podIPs }, labels: { podIPs: podIPs.replace("/32", "") } };
  const contentType = "application/merge-patch+json";
  const { status } = await api
    .connect()
    .request({ method: "PATCH", path, contentType, body: JSON.stringify({ metadata }) });
  expect(status).toBe(200);
  const isSeen = () => {
    const seen = endpoints.snapshot?.endpoints.get(keyOf(name));
    return podIPs === "" ? seen === undefined : seen?.metadata.labels?.["podIPs"] === metadata.labels.podIPs;
  };
  await pollUntil(isSeen, `${name} to claim ${podIPs}`, 5_000);
}

/** A block of this node, or of `home`, in which 10.0.0.5 is assigned. */
async function writeHolder(
  holder: { readonly pod: string; readonly node: string },
  home = NODE,
  cidr = BLOCK,
): Promise<void> {
  const key = blockKey(cidr);
  const isAssigned = (ordinal: number) => ordinalOf(cidr, address("10.0.0.5")) === ordinal;
  const ordinals = Array.from({ length: blockSize(cidr) }, (_, ordinal) => ordinal);
  const value = writeBlock({
    cidr,
    affinity: `host:${home}`,
    allocations: ordinals.map((ordinal) => (isAssigned(ordinal) ? 0 : undefined)),
    unallocated: ordinals.filter((ordinal) => !isAssigned(ordinal)),
    attributes: [{ handleId: "net.c1", secondary: { namespace: "shop", ...holder } }],
    sequenceNumber: 1n,
    sequenceNumberForAllocation: {},
    deleted: false,
  });
  const before = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
  const written = await store.commit([
    before === undefined ? { kind: "create", key, value } : { kind: "update", key, value, revision: before.revision },
  ]);
  expect(written.ok).toBe(true);
}

const keyOf = (name: string, node = NODE) => ENDPOINT.key({ namespace: "shop", name: `${node}-k8s-${name}-eth0` });
const addressesOf = (name: string, node = NODE) =>
  endpoints.snapshot?.endpoints.get(keyOf(name, node))?.spec.ipNetworks;
const until = (name: string, expected: readonly string[], node = NODE) =>
  pollUntil(() => Bun.deepEquals(addressesOf(name, node), expected), `${name} to have ${expected}`, 5_000);

describe("endpoints whose claims are proven", () => {
  test.each([
    ["inside the block of its pool", "10.0.0.5/32"],
    ["around the block of its pool", "10.0.0.0/24"],
  ])("a block of another node %s proves nothing, whichever arrives first", async (_, cidr) => {
    start();
    await makePod({ name: "web", node: "n2", podIPs: "10.0.0.5/32" });
    await makePod({ name: "thief", node: "n3", podIPs: "10.0.0.5/32" });
    await writeHolder({ pod: "thief", node: "n3" }, "n3", prefix(cidr));
    await until("thief", ["10.0.0.5/32"], "n3");
    await writeHolder({ pod: "web", node: "n2" }, "n2");
    await until("web", ["10.0.0.5/32"], "n2");
    await until("thief", [], "n3");
  });

  test("two blocks around an address must agree if neither is of its pool", async () => {
    start();
    await makePod({ name: "web", node: "n2", podIPs: "10.0.0.5/32" });
    await makePod({ name: "thief", node: "n3", podIPs: "10.0.0.5/32" });
    await writeHolder({ pod: "web", node: "n2" }, "n2", prefix("10.0.0.0/29"));
    await until("web", ["10.0.0.5/32"], "n2");
    await writeHolder({ pod: "thief", node: "n3" }, "n3", prefix("10.0.0.5/32"));
    await until("web", [], "n2");
    await until("thief", [], "n3");
  });

  test("an address of a block counts before the kubelet reports it, whichever arrives first", async () => {
    start();
    await makePod({ podIPs: "10.0.0.5/32" });
    await until("web", []);
    await writeHolder({ pod: "web", node: NODE });
    await until("web", ["10.0.0.5/32"]);
    await makePod({ name: "db", podIPs: "10.0.0.5/32" });
    await until("db", []);
    await writeHolder({ pod: "db", node: NODE });
    await until("db", ["10.0.0.5/32"]);
    await until("web", []);
  });

  test("a borrowed address counts: the entry in the block of another node names this one", async () => {
    start();
    await writeHolder({ pod: "web", node: NODE }, "n2");
    await makePod({ podIPs: "10.0.0.5/32" });
    await until("web", ["10.0.0.5/32"]);
  });

  test("of a pod of another node too; one that IPAM holds for another pod does not", async () => {
    start();
    await writeHolder({ pod: "web", node: "n2" }, "n2");
    await makePod({ node: "n2", podIPs: "10.0.0.5/32,10.99.0.66/32" });
    await makePod({ name: "evil", node: "n2", podIPs: "10.0.0.9/32,10.0.0.5/32", reported: ["10.0.0.9"] });
    await until("web", ["10.0.0.5/32"], "n2");
    await until("evil", ["10.0.0.9/32"], "n2");
  });

  test("nothing is seen before the blocks are known", async () => {
    await writeHolder({ pod: "web", node: NODE });
    await makePod({ podIPs: "10.0.0.5/32" });
    start();
    const seen: (readonly string[] | undefined)[] = [];
    for await (const { snapshot } of endpoints.updates(stop.signal)) {
      seen.push(snapshot.endpoints.get(keyOf("web"))?.spec.ipNetworks);
      break;
    }
    expect(seen).toEqual([["10.0.0.5/32"]]);
  });

  test("the record of an ADD that follows its endpoint is found", async () => {
    const proven = start();
    await makePod({ podIPs: "203.0.113.5/32" });
    await until("web", []);
    const pod = { namespace: "shop", name: "web" };
    attachments.set(hostInterfaceName({ containerId: "", ifname: "eth0", pod }), {
      ...{ mark: "net/c1/eth0", pod: { namespace: "shop", name: "web" }, addresses: ["203.0.113.5"] },
      ...{ floating: [], sourcePrefixes: [] },
    });
    await until("web", ["203.0.113.5/32"]);
    expect(proven.refused).toEqual([]);
  });

  test("what stays unproven is reported once, with the pod, and forgotten with it", async () => {
    const proven = start();
    await makePod({ podIPs: "10.0.0.5/32,garbage", reported: ["10.0.0.5"] });
    await until("web", ["10.0.0.5/32"]);
    expect(proven.refused).toEqual([]);
    elapsed = 60_000;
    await pollUntil(() => published.length > 0, "the claims to be published", 15_000);
    await api.connect().request({ method: "DELETE", path: "/api/v1/namespaces/shop/pods/web" });
    await pollUntil(() => published.length > 1, "the claims to be forgotten", 15_000);

    expect(published).toEqual([[{ namespace: "shop", pod: "web", refused: ['podIPs: "garbage": not readable'] }], []]);
    expect(reports).toEqual(['Annotations of pod shop/web do not count: podIPs: "garbage": not readable']);
  });

  test("values after the first 32 of an annotation are reported too", async () => {
    start();
    const claimed = Array.from({ length: 34 }, (_, index) => `10.0.0.${index + 1}`);
    await makePod({ podIPs: claimed.map((each) => `${each}/32`).join(","), reported: claimed.slice(0, 32) });
    await until(
      "web",
      claimed.slice(0, 32).map((each) => `${each}/32`),
    );
    elapsed = 60_000;
    await pollUntil(() => published.length > 0, "the claims to be published", 15_000);

    expect(published).toEqual([
      [{ namespace: "shop", pod: "web", refused: ["podIPs: 2 values after the first 32: not readable"] }],
    ]);
  });

  test("an endpoint that was read from the datastore is undecided until the blocks are known", async () => {
    await makePod({ podIPs: "10.0.0.5/32" });
    await writeHolder({ pod: "web", node: NODE });
    const [entry] = (await store.read([{ kind: "key", key: keyOf("web") }])).answers[0] ?? [];
    const read = ENDPOINT.codec.read(entry?.value ?? "", entry?.key ?? "");
    const proven = start();

    expect(proven.settled(read)).toBeUndefined();
    await until("web", ["10.0.0.5/32"]);
    expect(proven.settled(read)?.spec.ipNetworks).toEqual(["10.0.0.5/32"]);
  });

  test("an address of a block counts although the annotations do not name it, until the block releases it", async () => {
    start();
    await makePod({ podIPs: "10.0.0.9/32" });
    await until("web", []);
    await writeHolder({ pod: "web", node: NODE });
    await until("web", ["10.0.0.5/32"]);
    await writeHolder({ pod: "db", node: NODE });
    await until("web", []);
  });

  test("after a restart, a block that is gone meanwhile proves nothing any more", async () => {
    const proven = start();
    await writeHolder({ pod: "web", node: "n2" }, "n2");
    await makePod({ node: "n2", podIPs: "10.0.0.5/32" });
    await until("web", ["10.0.0.5/32"], "n2");
    const again = async function* () {
      yield { changes: { blocks4: [], blocks6: [] } };
    };
    const refresh = (keys: Iterable<string>) => endpoints.refresh("endpoints", keys);
    running = Promise.all([running, proven.run(again(), { refresh, wait: SYSTEM_CLOCK.wait, signal: stop.signal })]);
    await until("web", [], "n2");
  });

  test("claims that change all the time, or are gone for a moment, are decided in the end", async () => {
    const proven = start();
    await makePod({ podIPs: "10.99.0.1/32" });
    const [entry] = (await store.read([{ kind: "key", key: keyOf("web") }])).answers[0] ?? [];
    const read = ENDPOINT.codec.read(entry?.value ?? "", entry?.key ?? "");
    await until("web", []);
    for (const podIPs of ["10.99.0.2/32", "", "10.99.0.3/32"]) {
      elapsed += 20_000;
      await annotate("web", podIPs);
    }

    expect(proven.settled(read)?.spec.ipNetworks).toEqual([]);
    elapsed += 20_000;
    await annotate("web", "");
    elapsed += 60_000;
    await annotate("web", "10.99.0.4/32");
    expect(proven.settled(read)).toBeUndefined();
  });

  test("so is a new one whose block is late: a watch may stall", async () => {
    const proven = start();
    await makePod({ podIPs: "10.0.0.5/32" });
    const [entry] = (await store.read([{ kind: "key", key: keyOf("web") }])).answers[0] ?? [];
    const read = ENDPOINT.codec.read(entry?.value ?? "", entry?.key ?? "");
    await until("web", []);

    expect(proven.settled(read)).toBeUndefined();
    elapsed = 60_000;
    expect(proven.settled(read)?.spec.ipNetworks).toEqual([]);
  });
});

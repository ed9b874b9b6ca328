import { beforeEach, describe, expect, test } from "bun:test";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { identity } from "../../identity.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import {
  affinitiesPrefix,
  affinityKey,
  blockKey,
  borrowedKey,
  borrowedPrefix,
  handleKey,
  IPAM_CONFIGURATION_KEY,
  resourceKey,
  resourcesPrefix,
} from "../../model/keys.ts";
import { readStoredNode } from "../../model/stored-resources.ts";
import type { Datastore, Entry } from "../datastore.ts";
import { failureOf } from "../datastore-contract/subject.ts";
import { productMapping } from "./product-mapping.ts";
import { openKubeStore } from "./store.ts";

let api: FakeApi;
let store: Datastore;
let asked: string[];
let marks = 0;

beforeEach(() => {
  api = startFakeApi();
  asked = [];
  const client = api.connect(async (request, send) => {
    const { method, path, query: { limit: _, ...query } = {} } = request;
    asked.push([method, path, ...Object.values(query)].join(" "));
    return send();
  });
  store = openKubeStore({ api: client, mappings: productMapping(() => String(++marks)), close: () => client.close() });
});

const CRS = "/apis/vendor.org/v3";

function cidr(text: string) {
  const prefix = parsePrefix(text);
  if (prefix === undefined) throw new Error(`"${text}" is not a prefix`);
  return prefix;
}

async function readOne(key: string): Promise<Entry | undefined> {
  return (await store.read([{ kind: "key", key }])).answers[0]?.[0];
}

async function created(key: string, value: string): Promise<Entry | undefined> {
  expect((await store.commit([{ kind: "create", key, value }])).ok).toBe(true);
  return readOne(key);
}

/** Creates an object as another program would. */
async function make(path: string, object: object): Promise<void> {
  const { status } = await api.connect().request({ method: "POST", path, body: JSON.stringify(object) });
  expect(status).toBe(201);
}

describe("records of the IPAM", () => {
  const BLOCK = `{"cidr":"10.0.0.0/26","affinity":"host:n1","allocations":[0,null],"unallocated":[1],"attributes":[],"deleted":false,"sequenceNumber":9223372036854775807,"sequenceNumberForAllocation":{"0":9007199254740993}}`;

  test("a block is an object named after its addresses; numbers beyond 2^53 stay exact on the wire", async () => {
    let body = "";
    const listening = startFakeApi();
    const client = listening.connect(async (request, send) => {
      body = request.body ?? body;
      return send();
    });
    const other = openKubeStore({ api: client, mappings: productMapping(() => "m"), close: async () => {} });
    await other.commit([{ kind: "create", key: blockKey(cidr("10.0.0.0/26")), value: BLOCK }]);

    expect(body).toContain('"sequenceNumber":9223372036854775807');
    expect(body).toContain('"0":9007199254740993');
    expect(listening.object(`${CRS}/ipamblocks/10-0-0-0-26`)).toMatchObject({ kind: "IPAMBlock" });
  });

  test.each([
    ["10.0.0.0/26", "10-0-0-0-26"],
    ["fd80::/122", "fd80---122"],
    ["fd80:0:0:1::40/122", "fd80-0-0-1--40-122"],
  ])("the block %s is named %s", async (text, name) => {
    const value = JSON.stringify({ cidr: text, allocations: [], unallocated: [] });
    const entry = await created(blockKey(cidr(text)), value);

    expect(api.object(`${CRS}/ipamblocks/${name}`)).toBeDefined();
    expect(entry).toMatchObject({ key: blockKey(cidr(text)), value });
  });

  test("claims of a node are listed by a selector, apart from blocks that it borrows from", async () => {
    const block = cidr("10.0.0.0/26");
    await created(affinityKey("n1", block), '{"state":"confirmed","deleted":false}');
    await created(affinityKey("n2", block), '{"state":"pending","deleted":false}');
    await created(borrowedKey("n1", block), "{}");
    asked.splice(0);
    const { answers } = await store.read([
      { kind: "prefix", prefix: affinitiesPrefix("n1") },
      { kind: "prefix", prefix: borrowedPrefix("n1") },
    ]);

    expect(answers.map((found) => found.map(({ key, value }) => [key, JSON.parse(value)]))).toEqual([
      [[affinityKey("n1", block), { state: "confirmed", deleted: false }]],
      [[borrowedKey("n1", block), { deleted: false }]],
    ]);
    expect(asked).toEqual([
      `GET ${CRS}/blockaffinities vendor.org/claim=affinity,vendor.org/node=n1`,
      `GET ${CRS}/blockaffinities vendor.org/claim=borrowed,vendor.org/node=n1`,
    ]);
    expect(api.object(`${CRS}/blockaffinities/n1-10-0-0-0-26`)).toMatchObject({
      spec: { state: "confirmed", node: "n1", cidr: "10.0.0.0/26", deleted: "false" },
    });
  });

  test("names of any length are told apart", async () => {
    const long = (end: string) => `${"n".repeat(240)}${end}`;
    const block = cidr("10.0.0.0/26");
    for (const node of [long("a"), long("b")]) await created(affinityKey(node, block), '{"state":"confirmed"}');
    const read = async (node: string) =>
      (await store.read([{ kind: "prefix", prefix: affinitiesPrefix(node) }])).answers[0]?.map(({ key }) => key);

    expect(await read(long("a"))).toEqual([affinityKey(long("a"), block)]);
    expect(await read(long("b"))).toEqual([affinityKey(long("b"), block)]);
  });

  test("handles that differ only in case, or that are no name, are told apart", async () => {
    const ids = ["net.abc", "Net.abc", "net_1.abc", "net-1.abc"];
    for (const id of ids) await created(handleKey(id), `{"block":{"10.0.0.0/26":1},"deleted":false}`);
    for (const id of ids) expect((await readOne(handleKey(id)))?.key).toBe(handleKey(id));

    expect(api.object(`${CRS}/ipamhandles/net.abc`)).toMatchObject({
      spec: { handleID: "net.abc", block: { "10.0.0.0/26": 1 }, deleted: false },
    });
  });

  test("the configuration has the names of its public fields", async () => {
    const value = '{"strict_affinity":true,"auto_allocate_blocks":false,"maxBlocksPerHost":3}';
    const entry = await created(IPAM_CONFIGURATION_KEY, value);

    expect(api.object(`${CRS}/ipamconfigurations/default`)).toMatchObject({
      spec: { strictAffinity: true, autoAllocateBlocks: false, maxBlocksPerHost: 3 },
    });
    expect(JSON.parse(entry?.value ?? "")).toEqual(JSON.parse(value));
  });
});

describe("resources", () => {
  const POOL = {
    apiVersion: "vendor.org/v3",
    kind: "IPPool",
    metadata: { name: "blue", uid: "ours", creationTimestamp: "2020-01-01T00:00:00Z", labels: { a: "b" } },
    spec: { cidr: "10.0.0.0/16" },
  };
  const key = resourceKey("ippools", { name: "blue" });

  test("UID and creation time are those of the API server, and its own fields are left out", async () => {
    const entry = await created(key, JSON.stringify(POOL));

    expect(JSON.parse(entry?.value ?? "")).toEqual({
      ...POOL,
      metadata: { name: "blue", uid: "uid-1", creationTimestamp: "1970-01-01T00:00:00.000Z", labels: { a: "b" } },
    });
  });

  test("an update removes labels that are gone, and keeps finalizers of others", async () => {
    const entry = await created(key, JSON.stringify({ ...POOL, metadata: { ...POOL.metadata, finalizers: ["a/b"] } }));
    const value = JSON.stringify({ ...POOL, metadata: { name: "blue", uid: "uid-1" } });
    await store.commit([{ kind: "update", key, value, revision: entry?.revision ?? "" }]);
    const { metadata } = JSON.parse((await readOne(key))?.value ?? "");

    expect([metadata.labels, metadata.finalizers]).toEqual([{}, ["a/b"]]);
  });
});

describe("the node of the cluster", () => {
  const NODE_SPEC = `${identity.labelPrefix}node-spec`;
  const key = resourceKey("nodes", { name: "n1" });
  beforeEach(() => make("/api/v1/nodes", { metadata: { name: "n1", labels: { zone: "a" } }, spec: { podCIDR: "x" } }));

  test("has the labels of the cluster's node, and an update adds annotations", async () => {
    const before = await readOne(key);
    const node = JSON.parse(before?.value ?? "");
    expect(node).toMatchObject({ kind: "Node", metadata: { name: "n1", labels: { zone: "a" } }, spec: {} });
    const after = { ...node, metadata: { ...node.metadata, annotations: { m: "1" } }, spec: { addresses: [] } };
    const update = { kind: "update", key, value: JSON.stringify(after), revision: before?.revision ?? "" } as const;

    expect((await store.commit([update])).ok).toBe(true);
    expect(JSON.parse((await readOne(key))?.value ?? "")).toEqual(after);
    expect(api.object("/api/v1/nodes/n1")).toMatchObject({ spec: { podCIDR: "x" } });
    expect(await store.commit([update])).toMatchObject({ ok: false, reason: "stale" });
  });

  test("has the machine that its kubelet reported, which an update does not change", async () => {
    const status = { nodeInfo: { machineID: "0123" } };
    await make("/api/v1/nodes", { metadata: { name: "n3" }, status });
    const other = resourceKey("nodes", { name: "n3" });
    const before = await readOne(other);
    const node = JSON.parse(before?.value ?? "");
    expect(readStoredNode(before?.value ?? "", other).kubelet).toMatchObject({ machineId: "0123" });
    const after = { ...node, metadata: { ...node.metadata, annotations: { m: "1" } }, status: {} };
    const revision = before?.revision ?? "";
    const update = { kind: "update", key: other, value: JSON.stringify(after), revision } as const;

    expect((await store.commit([update])).ok).toBe(true);
    expect(api.object("/api/v1/nodes/n3")).toMatchObject({ status });
  });

  test("has the addresses that its kubelet reported, whatever the annotation says", async () => {
    const annotations = { [NODE_SPEC]: JSON.stringify({ addresses: [{ address: "192.0.2.9" }] }) };
    const addresses = [
      { type: "InternalIP", address: "192.0.2.3" },
      { type: "Hostname", address: "n3" },
    ];
    await make("/api/v1/nodes", { metadata: { name: "n3", annotations }, status: { addresses } });
    expect(JSON.parse((await readOne(resourceKey("nodes", { name: "n3" })))?.value ?? "")).toMatchObject({
      spec: { addresses: [{ address: "192.0.2.9" }] },
      status: { kubeletAddresses: ["192.0.2.3"] },
    });
  });

  test("has the external addresses that are reported, besides others, and stores none of them", async () => {
    const key = resourceKey("nodes", { name: "n3" });
    const external = { address: "198.51.100.3", type: "ExternalIP" };
    const internal = { address: "192.0.2.3", type: "InternalIP" };
    const names = { type: "ExternalIP", address: "n3.example.org" };
    await make("/api/v1/nodes", { metadata: { name: "n3" }, status: { addresses: [internal, external, names] } });
    const addresses = async () => JSON.parse((await readOne(key))?.value ?? "").spec.addresses;
    const write = async (listed: readonly object[]) => {
      const before = await readOne(key);
      const node = JSON.parse(before?.value ?? "");
      const value = JSON.stringify({ ...node, spec: { ...node.spec, bgp: {}, addresses: listed } });
      return store.commit([{ kind: "update", key, value, revision: before?.revision ?? "" }]);
    };
    expect(await addresses()).toEqual([internal, external]);

    await write(await addresses());
    expect(api.object("/api/v1/nodes/n3")?.metadata.annotations?.[NODE_SPEC]).toBe('{"bgp":{}}');
    const own = { address: "192.0.2.9/24", type: "InternalIP" };
    await write([own, external]);
    expect(api.object("/api/v1/nodes/n3")?.metadata.annotations?.[NODE_SPEC]).not.toContain("198.51.100.3");
    expect(await addresses()).toEqual([own, external]);
  });

  test("has the pod CIDRs of its annotation that the orchestrator has assigned to it, and names the others", async () => {
    const podCIDRs = ["10.244.1.0/24", "fd00:0:0::/80", "10.244.2.0/24"];
    const annotations = { [NODE_SPEC]: JSON.stringify({ podCIDRs }) };
    const assigned = { podCIDRs: ["10.244.1.0/24", "fd00::/80", "10.244.7.0/24"] };
    await make("/api/v1/nodes", { metadata: { name: "n3", annotations }, spec: assigned });
    await make("/api/v1/nodes", { metadata: { name: "n4", annotations } });
    const read = async (name: string) => JSON.parse((await readOne(resourceKey("nodes", { name })))?.value ?? "");
    expect(await read("n3")).toMatchObject({
      spec: { podCIDRs: ["10.244.1.0/24", "fd00:0:0::/80"] },
      status: { unassignedPodCIDRs: ["10.244.2.0/24"] },
    });
    const { spec, status } = await read("n4");
    expect([spec, status]).toEqual([{}, { unassignedPodCIDRs: podCIDRs }]);
  });

  test("is neither created nor deleted nor labelled here", async () => {
    const before = await readOne(key);
    const revision = before?.revision ?? "";
    const value = (before?.value ?? "").replace('"zone":"a"', '"zone":"b"');

    for (const change of [
      { kind: "create", key: resourceKey("nodes", { name: "n2" }), value: "{}" },
      { kind: "delete", key, revision },
      { kind: "update", key, value, revision },
    ] as const) {
      expect(await failureOf(store.commit([change]))).toMatchObject({ kind: "resource-invalid" });
    }
  });
});

describe("profiles", () => {
  test("are derived from namespaces and service accounts, and cannot be written", async () => {
    await make("/api/v1/namespaces", { metadata: { name: "red", labels: { team: "a" } } });
    await make("/api/v1/namespaces/red/serviceaccounts", { metadata: { name: "web.1", namespace: "red" } });
    const { answers } = await store.read([
      { kind: "prefix", prefix: resourcesPrefix("profiles") },
      { kind: "key", key: resourceKey("profiles", { name: "ksa.red.web.1" }) },
      { kind: "key", key: resourceKey("profiles", { name: "net" }) },
    ]);
    const names = answers.map((found) => found.map(({ value }) => JSON.parse(value).metadata.name));

    expect(names).toEqual([["kns.red", "ksa.red.web.1"], ["ksa.red.web.1"], []]);
    expect(JSON.parse(answers[0]?.[0]?.value ?? "").spec).toEqual({
      ingress: [{ action: "Allow" }],
      egress: [{ action: "Allow" }],
      labelsToApply: { "pcns.team": "a", "pcns.vendor.org/name": "red" },
    });
    const change = { kind: "create", key: resourceKey("profiles", { name: "net" }), value: "{}" } as const;
    expect(await failureOf(store.commit([change]))).toMatchObject({ kind: "resource-invalid" });
  });
});

describe("labels of containers", () => {
  test("do not lower the revision of what is read with them", async () => {
    const profiles = { kind: "prefix", prefix: resourcesPrefix("profiles") } as const;
    const { revision } = await store.read([profiles]);
    const both = await store.read([profiles, { kind: "prefix", prefix: resourcesPrefix("containerlabels") }]);

    expect(BigInt(revision)).toBeGreaterThan(0n);
    expect(both.revision).toBe(revision);
  });

  test("do not exist, cost no request, can be followed, and cannot be written", async () => {
    const [prefix, key] = [resourcesPrefix("containerlabels"), resourceKey("containerlabels", { name: "n1.web" })];
    const { revision, answers } = await store.read([
      { kind: "prefix", prefix },
      { kind: "key", key },
    ]);
    const ending = new AbortController();
    const events: unknown[] = [];
    for await (const event of store.watch(prefix, revision, ending.signal)) {
      events.push(event);
      ending.abort();
    }

    expect({ answers, events, asked }).toEqual({
      ...{ answers: [[], []], events: [{ kind: "bookmark", revision, isFinal: true }], asked: [] },
    });
    expect(await failureOf(store.commit([{ kind: "create", key, value: "{}" }]))).toMatchObject({
      kind: "resource-invalid",
      details: 'use "kubectl label pod"',
    });
    await expect(
      store.watch("/none/", "1", AbortSignal.timeout(60_000))[Symbol.asyncIterator]().next(),
    ).rejects.toThrow("it is not the prefix of a kind");
  });
});

describe("the endpoint of a pod", () => {
  const PODS = "/api/v1/namespaces/red/pods";
  const key = resourceKey("workloadendpoints", { namespace: "red", name: "n--1-k8s-web--0-eth0" });
  const endpoint = (containerID: string, ipNetworks: readonly string[]) =>
    JSON.stringify({
      metadata: { annotations: { "vendor.org/network": "net" } },
      spec: { containerID, ipNetworks },
    });
  const pod = (more: object = {}) => ({
    metadata: { name: "web-0", namespace: "red", labels: { app: "web" }, ...more },
    spec: {
      nodeName: "n-1",
      serviceAccountName: "runner",
      containers: [{ ports: [{ name: "http", containerPort: 80 }, { containerPort: 81 }] }],
    },
  });
  const annotationsOf = () => api.object(`${PODS}/web-0`)?.metadata["annotations"];

  test.each([
    ["without annotations", {}],
    ["with others", { annotations: { other: "x" } }],
  ])("is recorded by a patch of the status of a pod %s, and read from it", async (_, more) => {
    await make(PODS, pod(more));
    expect(await readOne(key)).toBeUndefined();
    asked.splice(0);
    await store.commit([{ kind: "create", key, value: endpoint("c1", ["10.0.0.1/32", "fd00::1/128"]) }]);

    expect(asked).toEqual([`PATCH ${PODS}/web-0/status`]);
    expect(annotationsOf()).toEqual({
      ...("annotations" in more ? more.annotations : {}),
      "cni.vendor.org/podIP": "10.0.0.1/32",
      "cni.vendor.org/podIPs": "10.0.0.1/32,fd00::1/128",
      "cni.vendor.org/containerID": "c1",
      "cni.vendor.org/network": "net",
    });
    const { metadata, spec } = JSON.parse((await readOne(key))?.value ?? "");
    expect(metadata).toMatchObject({
      name: "n--1-k8s-web--0-eth0",
      namespace: "red",
      labels: { app: "web", "vendor.org/namespace": "red", "vendor.org/serviceaccount": "runner" },
    });
    expect(spec).toMatchObject({
      node: "n-1",
      pod: "web-0",
      containerID: "c1",
      ipNetworks: ["10.0.0.1/32", "fd00::1/128"],
      profiles: ["kns.red", "ksa.red.runner"],
      ports: [{ name: "http", protocol: "TCP", port: 80 }],
    });
  });

  test("is not affected by what the kubelet writes meanwhile, and is blanked at the end", async () => {
    await make(PODS, pod());
    await store.commit([{ kind: "create", key, value: endpoint("c1", ["10.0.0.1/32"]) }]);
    const entry = await readOne(key);
    const written = api.object(`${PODS}/web-0`);
    await api.connect().request({
      method: "PUT",
      path: `${PODS}/web-0`,
      body: JSON.stringify({ ...written, status: { phase: "Running" } }),
    });

    expect((await store.commit([{ kind: "delete", key, revision: entry?.revision ?? "" }])).ok).toBe(true);
    expect(annotationsOf()).toMatchObject({ "cni.vendor.org/podIP": "", "cni.vendor.org/podIPs": "" });
    expect(await readOne(key)).toBeUndefined();
  });

  describe("without annotations of the plugin", () => {
    const reported = { podIP: "10.9.0.1", podIPs: [{ ip: "10.9.0.1" }, { ip: "fd09::1" }] };
    const PHASES = [
      ["Running", undefined],
      ["Succeeded", { phase: "Succeeded" }],
      ["Failed", { phase: "Failed" }],
    ] as const;

    test.each(PHASES)("has the addresses that the kubelet of a %s pod reports", async (phase, status) => {
      await make(PODS, { ...pod(), status: { phase, ...reported } });
      const found = JSON.parse((await readOne(key))?.value ?? "");

      expect(found.spec).toMatchObject({ node: "n-1", ipNetworks: ["10.9.0.1/32", "fd09::1/128"] });
      expect([found.spec.containerID, found.spec.interfaceName]).toEqual([undefined, undefined]);
      expect(found.metadata.annotations).toEqual({ "cni.vendor.org/ipAddrsNoIpam": '["10.9.0.1","fd09::1"]' });
      expect(found.status).toEqual(status);
    });

    test("has one address if the kubelet reports only one, and is not an endpoint without addresses", async () => {
      await make(PODS, { ...pod(), status: { podIP: "10.9.0.1", podIPs: [] } });
      expect(JSON.parse((await readOne(key))?.value ?? "").spec.ipNetworks).toEqual(["10.9.0.1/32"]);
      await make(PODS, { ...pod({ name: "web-1" }), status: { podIP: "", podIPs: [{ ip: "?" }] } });
      expect(await readOne(key.replace("--0", "--1"))).toBeUndefined();
    });

    test.each([
      ["recorded", { "cni.vendor.org/podIP": "10.0.0.1/32" }, ["10.0.0.1/32"]],
      ["blank, as after a DEL", { "cni.vendor.org/podIP": "", "cni.vendor.org/podIPs": "" }, undefined],
    ])("is not meant if the annotations are %s", async (_, annotations, networks) => {
      await make(PODS, { ...pod({ annotations }), status: reported });
      const entry = await readOne(key);

      expect(entry && JSON.parse(entry.value).spec.ipNetworks).toEqual(networks);
    });

    test.each([
      ["in the network of its host", { nodeName: "n-1", hostNetwork: true, containers: [] }],
      ["without a node", { containers: [] }],
    ])("is not an endpoint %s", async (_, spec) => {
      await make(PODS, { ...pod(), spec, status: reported });

      expect((await store.read([{ kind: "prefix", prefix: resourcesPrefix("workloadendpoints") }])).answers).toEqual([
        [],
      ]);
    });

    test("is replaced by what an ADD records", async () => {
      await make(PODS, { ...pod(), status: reported });
      const before = await readOne(key);
      const value = endpoint("c1", ["10.0.0.1/32"]);
      await store.commit([{ kind: "update", key, value, revision: before?.revision ?? "" }]);

      expect(JSON.parse((await readOne(key))?.value ?? "").spec).toMatchObject({
        containerID: "c1",
        ipNetworks: ["10.0.0.1/32"],
      });
    });
  });

  test("of a newer sandbox, or of a newer pod of the same name, is left alone", async () => {
    await make(PODS, pod());
    await store.commit([{ kind: "create", key, value: endpoint("c1", ["10.0.0.1/32"]) }]);
    const entry = await readOne(key);
    const other = openKubeStore({ api: api.connect(), mappings: productMapping(() => "m"), close: async () => {} });
    const seen = (await other.read([{ kind: "key", key }])).answers[0]?.[0];
    await other.commit([
      { kind: "update", key, value: endpoint("c2", ["10.0.0.2/32"]), revision: seen?.revision ?? "" },
    ]);
    const remove = { kind: "delete", key, revision: entry?.revision ?? "" } as const;

    expect(await store.commit([remove])).toEqual({ ok: false, reason: "stale", key });
    expect(annotationsOf()).toMatchObject({
      "cni.vendor.org/containerID": "c2",
      "cni.vendor.org/podIP": "10.0.0.2/32",
    });
    await api.connect().request({ method: "DELETE", path: `${PODS}/web-0` });
    expect(await store.commit([remove])).toEqual({ ok: false, reason: "missing", key });
    await make(PODS, pod());
    expect((await store.commit([remove])).ok).toBe(false);
  });

  test("of a pod that does not exist, of another interface, or of a container without a pod is refused by name", async () => {
    const named = (name: string) => resourceKey("workloadendpoints", { namespace: "red", name });
    const create = (at: string) => failureOf(store.commit([{ kind: "create", key: at, value: endpoint("c1", []) }]));

    expect(await create(key)).toMatchObject({ kind: "container-unknown" });
    await make(PODS, pod());
    expect(await create(named("n--1-k8s-web--0-net1"))).toMatchObject({ kind: "config-invalid" });
    expect(await create(named("n--1-cni-c1-eth0"))).toMatchObject({ message: expect.stringContaining("c1-eth0") });
  });

  test("of a node are selected by the API server", async () => {
    const beginning = `${resourcesPrefix("workloadendpoints", "red")}n--1-k8s-`;
    await store.read([
      { kind: "prefix", prefix: beginning },
      { kind: "prefix", prefix: beginning.replace("k8s", "cni") },
      { kind: "prefix", prefix: resourcesPrefix("workloadendpoints", "red") },
      { kind: "prefix", prefix: resourcesPrefix("workloadendpoints") },
    ]);

    expect(asked).toEqual([`GET ${PODS} spec.nodeName=n-1`, `GET ${PODS}`, "GET /api/v1/pods"]);
  });
});

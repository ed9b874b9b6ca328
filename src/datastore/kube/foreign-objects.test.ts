/** Objects of our kinds that others made, changed or are deleting, and identities that look alike as names of objects. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import { affinitiesPrefix, affinityKey, blockKey, borrowedKey, handleKey, resourceKey } from "../../model/keys.ts";
import type { Datastore, Entry } from "../datastore.ts";
import { failureOf } from "../datastore-contract/subject.ts";
import { productMapping } from "./product-mapping.ts";
import { openKubeStore } from "./store.ts";

const CRS = "/apis/vendor.org/v3";

let api: FakeApi;
let store: Datastore;
let bodies: string[];
let asked: string[];
let marks = 0;

beforeEach(() => {
  api = startFakeApi();
  bodies = [];
  asked = [];
  const client = api.connect(async (request, send) => {
    asked.push(`${request.method} ${request.path}`);
    if (request.body !== undefined) bodies.push(request.body);
    return send();
  });
  store = openKubeStore({ api: client, mappings: productMapping(() => String(++marks)), close: () => client.close() });
});

function cidr(text: string) {
  const prefix = parsePrefix(text);
  if (prefix === undefined) throw new Error(`"${text}" is not a prefix`);
  return prefix;
}

const BLOCK = cidr("10.0.0.0/26");

async function readOne(key: string): Promise<Entry | undefined> {
  return (await store.read([{ kind: "key", key }])).answers[0]?.[0];
}

async function created(key: string, value: string): Promise<Entry> {
  expect(await store.commit([{ kind: "create", key, value }])).toMatchObject({ ok: true });
  const entry = await readOne(key);
  if (entry === undefined) throw new Error(`"${key}" was not created`);
  return entry;
}

/** Changes the metadata of an object as another program would. */
async function relabel(path: string, metadata: object): Promise<void> {
  const body = JSON.stringify({ metadata });
  const contentType = "application/merge-patch+json";
  expect(await api.connect().request({ method: "PATCH", path, contentType, body })).toMatchObject({ status: 200 });
}

describe("objects of others", () => {
  const claim = (name: string) => ({
    metadata: { name, labels: { "vendor.org/node": "n1", "vendor.org/claim": "affinity" } },
    spec: { node: "n1", cidr: "10.0.0.0/26", state: "confirmed", deleted: "false" },
  });
  const make = (object: object) =>
    api.connect().request({ method: "POST", path: `${CRS}/blockaffinities`, body: JSON.stringify(object) });

  test("an object with another name than that of its record is not the record", async () => {
    await make(claim("by-hand"));
    const { answers } = await store.read([{ kind: "prefix", prefix: affinitiesPrefix("n1") }]);
    expect(answers[0]).toEqual([]);

    const own = await created(affinityKey("n1", BLOCK), '{"state":"pending"}');
    const listed = await store.read([{ kind: "prefix", prefix: affinitiesPrefix("n1") }]);
    expect(listed.answers[0]?.map(({ revision }) => revision)).toEqual([own.revision]);
    const update = { kind: "update", key: own.key, value: '{"state":"confirmed"}', revision: own.revision } as const;
    expect(await store.commit([update])).toMatchObject({ ok: true });
  });

  test("an object with the name of a record, but the identity of another, is reported", async () => {
    await make({ ...claim("n1-10-0-0-0-26"), spec: { ...claim("").spec, cidr: "10.9.0.0/26" } });
    const failure = await failureOf(readOne(affinityKey("n1", BLOCK)));

    expect(failure).toMatchObject({ kind: "record-malformed" });
    expect(String(failure)).toContain("blockaffinities/n1-10-0-0-0-26");
  });
});

describe("an object that is being deleted", () => {
  const path = `${CRS}/ipamblocks/10-0-0-0-26`;
  const VALUE = '{"cidr":"10.0.0.0/26","allocations":[],"unallocated":[],"attributes":[]}';

  test("is not written any more: it would vanish with what was written", async () => {
    const { key } = await created(blockKey(BLOCK), VALUE);
    await relabel(path, { finalizers: ["other/one"] });
    await api.connect().request({ method: "DELETE", path });
    const revision = (await readOne(key))?.revision ?? "";
    const failure = await failureOf(store.commit([{ kind: "update", key, value: VALUE, revision }]));

    expect(failure).toMatchObject({ kind: "try-again-later" });
    expect(String(failure)).toContain("10-0-0-0-26");
    expect(String(failure)).toContain("other/one");
  });

  test("can be changed if it is a resource of the operator", async () => {
    const pool = {
      apiVersion: "vendor.org/v3",
      kind: "IPPool",
      metadata: { name: "blue" },
      spec: { cidr: "10.0.0.0/16" },
    };
    const { key } = await created(resourceKey("ippools", { name: "blue" }), JSON.stringify(pool));
    await relabel(`${CRS}/ippools/blue`, { finalizers: ["other/one"] });
    await api.connect().request({ method: "DELETE", path: `${CRS}/ippools/blue` });
    const entry = await readOne(key);
    const change = { kind: "update", key, value: entry?.value ?? "", revision: entry?.revision ?? "" } as const;

    expect(await store.commit([change])).toMatchObject({ ok: true });
  });
});

describe("identities", () => {
  test("a claim and what another node borrows have different names", async () => {
    await created(borrowedKey("a", BLOCK), "{}");
    await created(affinityKey("a-borrowed", BLOCK), '{"state":"confirmed"}');

    expect((await readOne(borrowedKey("a", BLOCK)))?.key).toBe(borrowedKey("a", BLOCK));
  });

  test("a replacement names the object's UID: a version can come back after a restore from an older copy", async () => {
    const { key, revision } = await created(handleKey("net.a"), '{"block":{}}');
    bodies.splice(0);
    await store.commit([{ kind: "update", key, value: '{"block":{"10.0.0.0/26":1}}', revision }]);

    expect(JSON.parse(bodies[0] ?? "").metadata).toMatchObject({ uid: "uid-1", resourceVersion: revision });
  });

  test.each(["..", ".", "a/b", "a?b", "A", ""])("no request is sent for a resource named %p", async (name) => {
    const pool = resourceKey("ippools", { name });
    const pod = resourceKey("workloadendpoints", { namespace: "red", name: `n1-k8s-${name}-eth0` });
    const elsewhere = resourceKey("workloadendpoints", { namespace: name, name: "n1-k8s-web-eth0" });
    const node = resourceKey("nodes", { name });
    for (const key of [pool, pod, elsewhere, node]) expect(await readOne(key)).toBeUndefined();

    expect(asked).toEqual([]);
  });
});

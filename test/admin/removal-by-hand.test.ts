/** docs/ipam.md says how to correct or remove a record by hand: its commands are executed, on both datastores. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DatastoreSettings } from "../../src/config/datastore-settings.ts";
import type { Datastore, DatastoreEvent } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { ROOT_PREFIX } from "../../src/model/keys.ts";
import { type EtcdCluster, hasEtcd, startEtcd } from "../support/etcd.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const page = readFileSync(join(import.meta.dir, "../../docs/ipam.md"), "utf8");
const section = page.slice(page.indexOf("### Removing a record by hand"));
const [FOR_ETCD = "", FOR_EMBEDDED = ""] = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(
  ([, script = ""]) => script,
);

const KEY = `${ROOT_PREFIX}ipam/v2/handle/net.a`;

describe.each([
  ["etcd", FOR_ETCD, hasEtcd && Bun.which("etcdctl") !== null],
  ["embedded", FOR_EMBEDDED, Bun.which("sqlite3") !== null],
] as const)("a record of %s by hand", (name, script, isPossible) => {
  const directory = temporaryDirectory("by-hand");
  const path = join(directory.path, "store.db");
  const statements = script.split(/^(?=etcdctl|sqlite3)/m);
  let etcd: EtcdCluster | undefined;
  let store: Datastore;

  beforeAll(async () => {
    if (!isPossible) return;
    if (name === "etcd") etcd = await startEtcd();
    const settings: DatastoreSettings = etcd
      ? { kind: "etcd", source: { kind: "endpoints", endpoints: etcd.endpoints } }
      : { kind: "embedded", path };
    store = await openDatastore(settings);
  });
  afterAll(async () => {
    await store?.close();
    await etcd?.stop();
    directory.remove();
  });

  function type(statement: string | undefined): void {
    const env = {
      ...process.env,
      KEY,
      STORE: path,
      ETCDCTL_API: "3",
      ETCDCTL_ENDPOINTS: etcd?.endpoints.join(",") ?? "",
    };
    const { exitCode, stderr } = Bun.spawnSync(["sh", "-c", statement ?? "false"], { cwd: directory.path, env });
    if (exitCode !== 0) throw new Error(`${statement}: ${stderr}`);
  }

  test.skipIf(!isPossible)("is copied, corrected and removed, and watchers are notified", async () => {
    const put = await store.commit([
      { kind: "put", key: KEY, value: "{" },
      { kind: "put", key: `${KEY}b`, value: "other" },
    ]);
    if (!put.ok) throw new Error("not written");
    const events = store.watch(KEY, put.revision, AbortSignal.timeout(20_000))[Symbol.asyncIterator]();
    const next = async (): Promise<DatastoreEvent> => {
      const { value } = await events.next();
      return value.kind === "bookmark" ? next() : value;
    };
    expect(statements).toHaveLength(3);

    type(statements[0]);
    expect(readFileSync(join(directory.path, "record.json"), "utf8")).toBe("{\n");
    writeFileSync(join(directory.path, "record.json"), '{"block":{}}');
    type(statements[1]);
    expect(await next()).toMatchObject({ entry: { key: KEY, value: '{"block":{}}' } });
    const corrected = (await store.read([{ kind: "key", key: KEY }])).answers[0]?.[0];
    expect(corrected?.value).toBe('{"block":{}}');
    expect(
      (await store.commit([{ kind: "update", key: KEY, value: "7", revision: corrected?.revision ?? "" }])).ok,
    ).toBe(true);
    expect(await next()).toMatchObject({ entry: { key: KEY, value: "7" } });
    type(statements[2]);
    expect(await next()).toMatchObject({ kind: "delete", key: KEY });
    expect((await store.read([{ kind: "prefix", prefix: KEY }])).answers[0]).toMatchObject([
      { key: `${KEY}b`, value: "other" },
    ]);
    await events.return?.();
  });
});

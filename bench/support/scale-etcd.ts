/** A real etcd that holds a whole cluster: written in large transactions, and what it did, from its metrics. */
import { readdirSync, readFileSync } from "node:fs";
import type { StoredRecord } from "../../sim/scale/cluster-records.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openEtcd } from "../../src/datastore/etcd/etcd.ts";

/** What etcd and the product accept in one transaction. */
const MOST_IN_ONE_REQUEST = 128;
const AT_ONCE = 4;

export interface ScaleEtcd {
  readonly endpoint: string;
  readonly pid: number;
  write(records: readonly StoredRecord[]): Promise<void>;
  delete(keys: readonly string[]): Promise<void>;
  counters(): Promise<EtcdCounters>;
}

export interface EtcdCounters {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Unary requests of any kind; the watches are streams. */
  readonly requests: number;
  readonly puts: number;
  readonly watchers: number;
}

export async function openScaleEtcd(endpoint: string, pid: number): Promise<ScaleEtcd> {
  const store: Datastore = await openEtcd(
    { source: { kind: "endpoints", endpoints: [endpoint] } },
    { upgradesToGrpc: true },
  );
  return {
    endpoint,
    pid,
    write: (records) =>
      inParts(records, async (part) => {
        const written = await store.commit(part.map((record) => ({ kind: "put", ...record })));
        if (!written.ok) throw new Error(`etcd refused a transaction: ${written.reason}`);
      }),
    delete: (keys) => inParts(keys, (part) => deleteKeys(endpoint, part)),
    counters: () => readCounters(endpoint),
  };
}

async function inParts<Item>(items: readonly Item[], work: (part: readonly Item[]) => Promise<void>): Promise<void> {
  let next = 0;
  const run = async () => {
    while (next < items.length) {
      const part = items.slice(next, next + MOST_IN_ONE_REQUEST);
      next += part.length;
      await work(part);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
}

/** Whatever their revisions are. */
async function deleteKeys(endpoint: string, keys: readonly string[]): Promise<void> {
  const success = keys.map((key) => ({ requestDeleteRange: { key: btoa(key) } }));
  const response = await fetch(`${endpoint}/v3/kv/txn`, { method: "POST", body: JSON.stringify({ success }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`etcd refused a transaction: ${text}`);
}

async function readCounters(endpoint: string): Promise<EtcdCounters> {
  const text = await (await fetch(`${endpoint}/metrics`)).text();
  const value = (name: string) => Number(new RegExp(`^${name} ([\\d.e+]+)$`, "m").exec(text)?.[1] ?? 0);
  const unary = text.matchAll(/^grpc_server_handled_total\{.*?grpc_type="unary".*?\} (\d+)$/gm);
  return {
    sentBytes: value("etcd_network_client_grpc_sent_bytes_total"),
    receivedBytes: value("etcd_network_client_grpc_received_bytes_total"),
    requests: Array.from(unary, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0),
    puts: value("etcd_debugging_mvcc_put_total"),
    watchers: value("etcd_debugging_mvcc_watcher_total"),
  };
}

/** The only process of this name in this process namespace. */
export function pidOf(name: string): number {
  const pid = readdirSync("/proc").find((each) => /^\d+$/.test(each) && nameOf(each) === name);
  if (pid === undefined) throw new Error(`No process is called ${name}`);
  return Number(pid);
}

function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}

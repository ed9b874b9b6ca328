/** Writes records to etcd by its HTTP gateway: the same cost for every system that reads them. */
export interface EtcdRecord {
  readonly key: string;
  readonly value: string;
}

/** etcd refuses larger transactions. */
const LARGEST_TRANSACTION = 120;

export async function putRecords(endpoint: string, records: readonly EtcdRecord[]): Promise<void> {
  for (let start = 0; start < records.length; start += LARGEST_TRANSACTION) {
    const success = records
      .slice(start, start + LARGEST_TRANSACTION)
      .map((record) => ({ requestPut: encoded(record) }));
    await post(endpoint, "txn", { success });
  }
}

export async function putRecord(endpoint: string, record: EtcdRecord): Promise<void> {
  await post(endpoint, "put", encoded(record));
}

export async function deleteRecord(endpoint: string, key: string): Promise<void> {
  await post(endpoint, "deleterange", { key: btoa(key) });
}

function encoded({ key, value }: EtcdRecord): EtcdRecord {
  return { key: btoa(key), value: btoa(value) };
}

async function post(endpoint: string, action: string, body: object): Promise<void> {
  const response = await fetch(`${endpoint}/v3/kv/${action}`, { method: "POST", body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`etcd refused "${action}": ${text}`);
}

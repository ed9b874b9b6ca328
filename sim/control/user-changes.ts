/** What users do to the objects that the controllers copy, and to the copies. */
import type { MemoryTable } from "../../src/datastore/memory/table.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { resourcesPrefix } from "../../src/model/keys.ts";
import type { Random } from "../schedule/random.ts";

const NAMES = ["amber", "blue", "coral"];

/** Creates an object of the orchestrator, or changes its labels, or deletes it. */
export async function changeSomeObject(user: Pick<KubeClient, "request">, random: Random): Promise<void> {
  const name = random.pick(NAMES);
  const collection = random.pick([
    "/api/v1/namespaces",
    "/api/v1/namespaces/amber/serviceaccounts",
    "/apis/networking.k8s.io/v1/namespaces/amber/networkpolicies",
    "/api/v1/nodes",
  ]);
  const path = `${collection}/${name}`;
  const labels = { team: random.pick(NAMES) };
  const namespace = collection.includes("/amber/") ? { namespace: "amber" } : {};
  const spec = collection.endsWith("networkpolicies") ? { spec: { podSelector: { matchLabels: labels } } } : {};
  if (random.chance(0.3)) return void (await user.request({ method: "DELETE", path }));
  const object = { metadata: { name, labels, ...namespace }, ...spec };
  const { status } = await user.request({ method: "POST", path: collection, body: JSON.stringify(object) });
  if (status === 409) await user.request({ method: "PUT", path, body: JSON.stringify(object) });
}

const COPIED = [resourcesPrefix("profiles"), resourcesPrefix("networkpolicies")];

/** Deletes or spoils a record that may be a copy. */
export function changeSomeRecord(table: MemoryTable, random: Random): void {
  const records = COPIED.flatMap((prefix) => table.answer({ kind: "prefix", prefix }));
  if (records.length === 0) return;
  const { key, value, revision } = random.pick(records);
  if (random.chance(0.5)) table.commit([{ kind: "delete", key, revision }]);
  else table.commit([{ kind: "put", key, value: random.chance(0.3) ? "{" : value.replace("team", "gang") }]);
}

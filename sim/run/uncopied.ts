/**
 * What users asked of the orchestrator and is not in the datastore, though everything is at rest. Said by the controllers'
 * own decisions on the truth, and for what policy is computed from also by a comparison that knows nothing of them.
 */
import type { Entry } from "../../src/datastore/datastore.ts";
import { orchestratorMapping } from "../../src/datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { titleInKey } from "../../src/model/keys.ts";
import { ENDPOINT, NETWORK_POLICY, PROFILE } from "../../src/model/kinds.ts";
import { ORCHESTRATOR_POLICY } from "../../src/model/orchestrator-policy.ts";
import { ACCOUNT_PROFILE, NAMESPACE_PROFILE } from "../../src/model/orchestrator-profile.ts";
import { dueChanges } from "../control/controllers-at-rest.ts";
import type { SimulatedApi } from "../datastore/simulated-api.ts";
import { type Records, recordsOfApi } from "../judge/records.ts";
import type { Servers } from "./servers.ts";

const COPIES = [
  { kind: NETWORK_POLICY, prefixes: [ORCHESTRATOR_POLICY] },
  { kind: PROFILE, prefixes: [NAMESPACE_PROFILE, ACCOUNT_PROFILE] },
];

export async function uncopied({ api, store, isEtcd }: Servers): Promise<readonly string[]> {
  const orchestrator = openKubeStore({ api: api.user, mappings: orchestratorMapping(), close: async () => {} });
  const due = await dueChanges({ store: store.user, orchestrator, isEtcd });
  return isEtcd ? [...due, ...differentCopies(api, store.records), ...differentLabels(api, store.records)] : due;
}

/** With the orchestrator's API as the datastore, these records are its objects: so they should be copied. */
function differentCopies(api: SimulatedApi, stored: Records): readonly string[] {
  const asked = recordsOfApi(api);
  return COPIES.flatMap(({ kind, prefixes }) => {
    const isCopy = ({ key }: Entry) => prefixes.some((prefix) => nameIn(key).startsWith(prefix));
    const specs = (records: Records) =>
      new Map(
        records
          .under(kind.prefix())
          .filter(isCopy)
          .map(({ key, value }) => [key, kind.codec.read(value, key).spec]),
      );
    const [wanted, found] = [specs(asked), specs(stored)];
    return [...new Set([...wanted.keys(), ...found.keys()])].flatMap((key) => {
      const title = `${kind.codec.kind} ${titleInKey(key)}`;
      if (!wanted.has(key)) return [`${title} is stored, but nobody asks for it`];
      if (!found.has(key)) return [`${title} is not stored`];
      return Bun.deepEquals(wanted.get(key), found.get(key)) ? [] : [`${title} is stored as it was before`];
    });
  });
}

/** Of pods, in the records of their endpoints. */
function differentLabels(api: SimulatedApi, stored: Records): readonly string[] {
  return stored.under(ENDPOINT.prefix()).flatMap(({ key, value }) => {
    const { metadata, spec } = ENDPOINT.codec.read(value, key);
    const pod = api.object(`/api/v1/namespaces/${metadata.namespace}/pods/${spec.pod}`);
    const labels = Object.entries((pod?.metadata["labels"] ?? {}) as Readonly<Record<string, string>>);
    return labels
      .filter(([name, text]) => metadata.labels?.[name] !== text)
      .map(([name, text]) => `The endpoint of pod ${metadata.namespace}/${spec.pod} has no label ${name}=${text}`);
  });
}

function nameIn(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

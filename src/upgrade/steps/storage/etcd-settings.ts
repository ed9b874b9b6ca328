/** On etcd both releases use the same records, except for the settings of the node agent: they are copied, and the former ones stay. */
import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { PluginError } from "../../../errors.ts";
import { nameInKey, resourcesPrefix } from "../../../model/keys.ts";
import { NODE_AGENT_CONFIGURATION } from "../../../model/kinds.ts";
import { formatProblems } from "../../../model/problem.ts";
import { isObject } from "../../../model/shape.ts";
import { parseStored } from "../../../model/stored.ts";
import { quoted } from "../../../quote.ts";
import type { Obstacle } from "../../engine/facts.ts";
import type { PlanningSite, StepPlan } from "../../engine/step.ts";
import { FORMER_AGENT_CONFIGURATION, FORMER_UID } from "../../former-names.ts";
import { agentSettings, isOfNodes } from "../../former-storage/agent-settings.ts";
import { isCopy } from "../../former-storage/compare.ts";
import type { CopiedRecord } from "../../former-storage/conversion.ts";

type Site = Pick<PlanningSite, "openDatastore">;

export async function planSettings(site: Site): Promise<StepPlan | undefined> {
  const store = await site.openDatastore();
  const { records, notes, obstacles } = await readSettings(store);
  const missing = await missingSettings(store, records);
  if (missing.length === 0) return undefined;
  return {
    step: "storage",
    changes: missing.map(({ what }) => ({ action: "create", what })),
    obstacles: obstacles.filter(({ key }) => missing.some((record) => record.key === key)),
    notes,
    estimatedSeconds: 1,
    data: {},
  };
}

export async function remainingSettings(site: Site): Promise<readonly string[]> {
  const store = await site.openDatastore();
  const { records } = await readSettings(store);
  return (await missingSettings(store, records)).map(({ what }) => `${what} is not copied yet`);
}

/** What exists already stays: an administrator may have written it. */
export async function copySettings(site: Site): Promise<void> {
  const store = await site.openDatastore();
  const { records, obstacles } = await readSettings(store);
  for (const { key, value } of await missingSettings(store, records)) {
    const refused = obstacles.find((each) => each.key === key);
    if (refused !== undefined) throw new PluginError("resource-invalid", refused.message, { details: refused.remedy });
    await store.commit([{ kind: "create", key, value }]);
  }
}

/** Only copies. */
export async function removeSettings(site: Site): Promise<void> {
  const store = await site.openDatastore();
  for (const entry of await readAllEntries(store, NODE_AGENT_CONFIGURATION.prefix())) {
    const { key, revision } = entry;
    if (isCopy(entry)) await store.commit([{ kind: "delete", key, revision }]);
  }
}

interface FormerSettings {
  readonly records: readonly CopiedRecord[];
  readonly notes: readonly string[];
  /** `key`: of the record that cannot be written. */
  readonly obstacles: readonly (Obstacle & { readonly key: string })[];
}

async function readSettings(store: Datastore): Promise<FormerSettings> {
  const entries = await readAllEntries(store, resourcesPrefix(FORMER_AGENT_CONFIGURATION.plural));
  const { codec, kind } = NODE_AGENT_CONFIGURATION;
  const notes: string[] = [];
  const obstacles: FormerSettings["obstacles"][number][] = [];
  const records = entries.flatMap(({ key, value }): CopiedRecord[] => {
    const name = nameInKey(key);
    if (!isOfNodes(name)) return [];
    const former = parseStored(value, FORMER_AGENT_CONFIGURATION.kind, key);
    if (!isObject(former)) throw new PluginError("record-malformed", `Cannot read ${quoted(key)}: it is not an object`);
    const { metadata } = former;
    const settings = agentSettings(name, former["spec"]);
    notes.push(...settings.notes);
    const what = `${FORMER_AGENT_CONFIGURATION.kind} ${quoted(name)}`;
    const copyKey = NODE_AGENT_CONFIGURATION.key({ name });
    const { uid, creationTimestamp } = isObject(metadata) ? metadata : {};
    const copy = {
      apiVersion: codec.apiVersion,
      kind,
      metadata: {
        ...{ name, uid: crypto.randomUUID(), annotations: { [FORMER_UID]: String(uid ?? "") } },
        ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      },
      spec: settings.spec,
    };
    const decoded = codec.decode(copy);
    for (const reason of [...settings.problems, ...(decoded.ok ? [] : [formatProblems(decoded.problems)])]) {
      const message = `${what} cannot be copied: ${reason}`;
      obstacles.push({ key: copyKey, message, remedy: "correct it with the admin tool of the earlier release" });
    }
    return [{ key: copyKey, value: JSON.stringify(copy), what: `${kind} ${quoted(name)}` }];
  });
  return { records, notes, obstacles };
}

async function missingSettings(store: Datastore, records: readonly CopiedRecord[]): Promise<readonly CopiedRecord[]> {
  if (records.length === 0) return [];
  const { answers } = await store.read(records.map(({ key }) => ({ kind: "key", key })));
  return records.filter((_, index) => answers[index]?.length === 0);
}

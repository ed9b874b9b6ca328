/** Writes labels of nodes: of the orchestrator's node, or of our record where it does not know the node. */
import type { Datastore } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import { NODE } from "../../../model/kinds.ts";
import { isObject } from "../../../model/shape.ts";
import { quoted } from "../../../quote.ts";
import type { Labels } from "../../../selector/selector.ts";
import { changeRecord } from "../../engine/change-record.ts";
import type { LabelTarget } from "./copied-labels.ts";

export interface LabelPlaces {
  readonly objects: ClusterObjects;
  readonly store: Datastore;
}

/** `null` removes a label. */
export type LabelChanges = Readonly<Record<string, string | null>>;

/** `undefined` if there is no such node. */
export async function readLabels({ objects, store }: LabelPlaces, target: LabelTarget): Promise<Labels | undefined> {
  if (target.kind === "orchestrator") {
    const node = await objects.read(pathOf(target));
    return node === undefined ? undefined : labelsIn(node);
  }
  const key = NODE.key({ name: target.name });
  const { answers } = await store.read([{ kind: "key", key }]);
  const entry = answers[0]?.[0];
  return entry === undefined ? undefined : (NODE.codec.read(entry.value, key).metadata.labels ?? {});
}

/** Writes what `decide` makes of the present labels; nothing if that is nothing. Again if the node changes in between. */
export async function changeLabels(
  places: LabelPlaces,
  target: LabelTarget,
  decide: (labels: Labels) => LabelChanges,
): Promise<void> {
  if (target.kind === "orchestrator") return changeOrchestratorLabels(places.objects, target, decide);
  const key = NODE.key({ name: target.name });
  await changeRecord(places.store, key, (value) => {
    if (value === undefined) throw missing(target);
    const node = NODE.codec.read(value, key);
    const { labels = {} } = node.metadata;
    const changes = decide(labels);
    if (Object.keys(changes).length === 0) return undefined;
    const merged = Object.entries({ ...labels, ...changes }).filter(
      (entry): entry is [string, string] => entry[1] !== null,
    );
    return NODE.codec.write({ ...node, metadata: { ...node.metadata, labels: Object.fromEntries(merged) } }, value);
  });
}

const ATTEMPTS = 10;

async function changeOrchestratorLabels(
  objects: ClusterObjects,
  target: LabelTarget,
  decide: (labels: Labels) => LabelChanges,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const node = await objects.read(pathOf(target));
    if (node === undefined) throw missing(target);
    const labels = decide(labelsIn(node));
    if (Object.keys(labels).length === 0) return;
    try {
      await objects.patch(pathOf(target), { metadata: { ...preconditionsOf(node), labels } });
      return;
    } catch (failure) {
      const isChanged = failure instanceof PluginError && failure.kind === "resource-changed";
      if (!isChanged || attempt === ATTEMPTS) throw failure;
    }
  }
}

function pathOf({ name }: LabelTarget): string {
  return `/api/v1/nodes/${name}`;
}

function labelsIn(node: Fields): Labels {
  const { labels } = isObject(node["metadata"]) ? node["metadata"] : {};
  const entries = Object.entries(isObject(labels) ? labels : {});
  return Object.fromEntries(entries.map(([label, value]) => [label, String(value)]));
}

function preconditionsOf(node: Fields): Fields {
  const { uid, resourceVersion } = isObject(node["metadata"]) ? node["metadata"] : {};
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

function missing({ name }: LabelTarget): PluginError {
  return new PluginError("resource-missing", `Cannot label node ${quoted(name)}: there is no such node`);
}

/** Pods are replaced if the network config changes: their template has a hash of it. Pure. */
import type { KubeObject } from "../../release/kube-object.ts";
import { CONFIG_HASH, NETWORK_CONFIG_MAP } from "../../release/workloads/names.ts";
import { hashOf } from "../../release/workloads/pod-parts.ts";
import { fieldsIn } from "../object-fields.ts";
import type { WantedObject } from "./wanted.ts";

/** With the hash of the network config that is among the objects. */
export function withConfigHash(objects: readonly WantedObject[]): readonly WantedObject[] {
  const config = objects.find(
    ({ object }) => object.kind === "ConfigMap" && object.metadata.name === NETWORK_CONFIG_MAP,
  );
  if (config === undefined) return objects;
  const hash = hashOf(config.object["data"]);
  return objects.map((each) =>
    hashIn(each.object) === undefined ? each : { ...each, object: withHash(each.object, hash) },
  );
}

export function hashIn(object: unknown): unknown {
  return fieldsIn(object, "spec", "template", "metadata", "annotations")[CONFIG_HASH];
}

export function withHash(object: KubeObject, hash: unknown): KubeObject {
  const spec = fieldsIn(object, "spec");
  const template = fieldsIn(spec, "template");
  const metadata = fieldsIn(template, "metadata");
  const annotations = { ...fieldsIn(metadata, "annotations"), [CONFIG_HASH]: hash };
  return { ...object, spec: { ...spec, template: { ...template, metadata: { ...metadata, annotations } } } };
}

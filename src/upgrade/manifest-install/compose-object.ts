/** An object of the API as it is to be written: what is wanted, with what of the live one stays. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { canonicalJson } from "../merge/canonical-json.ts";
import { fieldsIn } from "../object-fields.ts";
import type { WantedObject } from "./wanted.ts";

/** It described the object before, and would lead a later `kubectl apply` astray. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

export function composeObject({ object, mode }: WantedObject, live: Fields): Fields {
  const { status: _, metadata: liveMetadata, ...before } = live;
  const { managedFields: _managers, ...metadata } = fieldsIn(
    liveMetadata === undefined ? {} : { liveMetadata },
    "liveMetadata",
  );
  const { metadata: wantedMetadata, ...wanted } = object;
  const content =
    mode === "whole" ? { ...keptByServer(before), ...wanted } : fieldsIn({ added: addTo(before, wanted) }, "added");
  const { [LAST_APPLIED]: _applied, ...annotations } = fieldsIn(metadata, "annotations");
  const { annotations: _annotations, ...rest } = metadata;
  return {
    ...content,
    metadata: {
      ...rest,
      ...members("labels", { ...fieldsIn(metadata, "labels"), ...wantedMetadata.labels }),
      ...members("annotations", { ...annotations, ...wantedMetadata.annotations }),
    },
  };
}

/** Of accounts: what the orchestrator and users have set there stays. */
export const KEPT_FIELDS: readonly string[] = ["secrets", "imagePullSecrets"];

function keptByServer(live: Fields): Fields {
  return Object.fromEntries(Object.entries(live).filter(([name]) => KEPT_FIELDS.includes(name)));
}

/** Members and items of both; where they differ, the wanted one. */
function addTo(live: unknown, wanted: unknown): unknown {
  if (Array.isArray(live) && Array.isArray(wanted)) {
    const present = new Set(live.map(canonicalJson));
    return [...live, ...wanted.filter((each) => !present.has(canonicalJson(each)))];
  }
  if (!isObject(live) || !isObject(wanted)) return wanted;
  const added = Object.entries(wanted).map(
    ([name, value]) => [name, name in live ? addTo(live[name], value) : value] as const,
  );
  return { ...live, ...Object.fromEntries(added) };
}

function members(name: string, fields: Fields): Fields {
  return Object.keys(fields).length === 0 ? {} : { [name]: fields };
}

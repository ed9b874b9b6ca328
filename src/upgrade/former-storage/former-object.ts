/**
 * Objects of `crd.vendor.org/v1` as earlier releases stored them: the metadata that users wrote are JSON in an annotation,
 * and a policy has the name of its tier in front of its own. Pure.
 */
import type { ApiObject } from "../../datastore/kube/api.ts";
import { PluginError } from "../../errors.ts";
import { apiVersionOf, identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { DEFAULT_TIER } from "../../model/tier.ts";
import { parseJson } from "../../parse-json.ts";
import { FORMER_API, FORMER_UID } from "../former-names.ts";

const HIDDEN_METADATA = `${identity.labelPrefix}metadata`;
const DEFAULT_TIER_PREFIX = `${DEFAULT_TIER}.`;

export const FORMER_PATH = `/apis/${apiVersionOf(FORMER_API)}`;

/** `ippools.crd.vendor.org`: how kubectl names the kind. */
export function formerResource(plural: string): string {
  return `${plural}.${FORMER_API.group}`;
}

/** The metadata of the copy: as the user knows them, with the UID of the object that it was copied from. */
export function copiedMetadata(
  object: ApiObject,
  kind: string,
  owners: readonly Fields[],
): Fields & { readonly name: string } {
  const { name, namespace, uid, annotations = {}, labels: real } = object.metadata;
  const hidden = hiddenMetadata(object, annotations[HIDDEN_METADATA]);
  const { [HIDDEN_METADATA]: _, ...plain } = annotations;
  const users = isObject(hidden["annotations"]) ? hidden["annotations"] : {};
  const labels = isObject(hidden["labels"]) ? hidden["labels"] : real;
  return {
    name: userName(name, kind),
    ...(namespace === undefined ? {} : { namespace }),
    ...(labels === undefined ? {} : { labels }),
    annotations: { ...plain, ...users, [FORMER_UID]: uid },
    ...(owners.length === 0 ? {} : { ownerReferences: owners }),
  };
}

/** Whether it is a kind of policies with tiers. */
export function isInTier(kind: string): boolean {
  return kind.endsWith("NetworkPolicy") && !kind.endsWith("KubernetesNetworkPolicy");
}

/** `default.web` is `web`; policies of other tiers keep the prefix. */
function userName(name: string, kind: string): string {
  return isInTier(kind) && name.startsWith(DEFAULT_TIER_PREFIX) ? name.slice(DEFAULT_TIER_PREFIX.length) : name;
}

function hiddenMetadata({ metadata: { name } }: ApiObject, text: string | undefined): Fields {
  if (text === undefined) return {};
  try {
    const value = parseJson(text);
    if (isObject(value)) return value;
  } catch {
    // Reported below.
  }
  throw new PluginError(
    "record-malformed",
    `Cannot read the annotation "${HIDDEN_METADATA}" of "${name}": it is not JSON`,
  );
}

/**
 * The owners that its hidden metadata name, which the API server has never looked at. Those of the product are objects that the
 * move replaces; the step "owner-references" handles them.
 */
export function hiddenOwners(object: ApiObject): readonly Fields[] {
  const { ownerReferences } = hiddenMetadata(object, object.metadata.annotations?.[HIDDEN_METADATA]);
  const all = Array.isArray(ownerReferences) ? ownerReferences.filter(isObject) : [];
  return all.filter(({ apiVersion }) => {
    const [group] = String(apiVersion).split("/");
    return group !== identity.apiGroup && group !== FORMER_API.group;
  });
}

/** Labels that objects of the Kubernetes API can have. Resources of the product could have others in earlier storages. */
const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const NAME = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export function isKubernetesLabel([label, value]: readonly [string, string]): boolean {
  return NAME.test(label) && VALUE.test(value);
}

export const LABEL_RULE = "up to 63 letters, digits, -, _ and .";

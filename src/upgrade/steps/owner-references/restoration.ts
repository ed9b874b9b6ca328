/** Whether resources get other UIDs, and whether a reference that was removed is added again, and with which UID. Pure. */
import { API_VERSION } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { isObject } from "../../../model/shape.ts";
import type { Facts } from "../../engine/facts.ts";
import { FORMER_AGENT_CONFIGURATION, FORMER_UID } from "../../former-names.ts";
import { isInTier } from "../../former-storage/former-object.ts";
import { type OwnerReference, referencesIn } from "../../owned-objects/owned-object.ts";

export type Restoration =
  | { readonly kind: "present" }
  | { readonly kind: "add"; readonly operations: readonly object[] }
  /** Not added: a person has to decide. */
  | { readonly kind: "report"; readonly reason: string };

export interface OwnerState {
  readonly kind: string;
  readonly name: string;
  readonly metadata: Fields;
}

/** `uid`: what the dependant had when the reference was removed. */
export function decideRestoration(
  { reference, uid }: { readonly reference: OwnerReference; readonly uid: string },
  dependant: Fields | undefined,
  owner: OwnerState | undefined,
): Restoration {
  const { kind, name } = reference;
  if (dependant === undefined) return report("the object is gone");
  if (!isSame(dependant, uid))
    return report("the object was created again, by something that decides itself who owns it");
  if (owner === undefined) return report(`its owner ${kind} ${name} is gone`);
  if (!isSame(owner.metadata, reference.uid)) return report(`its owner ${kind} ${name} was created again`);
  const all = referencesIn(dependant);
  if (all.some((each) => each.uid === owner.metadata["uid"])) return { kind: "present" };
  const wanted = {
    ...reference,
    apiVersion: API_VERSION,
    kind: owner.kind,
    name: owner.name,
    uid: owner.metadata["uid"],
  };
  const former = all.findIndex((each) => each.uid === reference.uid);
  const controller = all.find((each, index) => each["controller"] === true && index !== former);
  if (controller !== undefined && reference["controller"] === true)
    return report(`another controller owns it now: ${controller.kind} ${controller.name}`);
  const unchanged = { op: "test", path: "/metadata/resourceVersion", value: dependant["resourceVersion"] };
  return { kind: "add", operations: [unchanged, addition(all.length, former, wanted)] };
}

function report(reason: string): Restoration {
  return { kind: "report", reason };
}

/** Without any reference the list is absent. One with the former UID that has appeared again is replaced. */
function addition(count: number, former: number, value: object): object {
  const path = "/metadata/ownerReferences";
  if (former >= 0) return { op: "replace", path: `${path}/${former}`, value };
  return count === 0 ? { op: "add", path, value: [value] } : { op: "add", path: `${path}/-`, value };
}

/** Itself, or the copy of it in the present storage. Releases from v3.28 on show UIDs with reversed bits. */
function isSame(metadata: Fields, uid: string): boolean {
  const known = [metadata["uid"], formerUidOf(metadata)].filter((each) => typeof each === "string");
  return known.some((each) => each === uid || reversedUid(each) === uid);
}

/** Of an object that was moved. */
export function formerUidOf(metadata: Fields): string | undefined {
  const annotations = metadata["annotations"];
  const uid = isObject(annotations) ? annotations[FORMER_UID] : undefined;
  return typeof uid === "string" ? uid : undefined;
}

/** The bits of each byte in reverse order, but for those of the version and the variant; the same in both directions. */
export function reversedUid(uid: string): string {
  const bytes = Buffer.from(uid.replaceAll("-", ""), "hex");
  const reversed = bytes.map((byte, index) => (index === 6 || index === 8 ? byte : (REVERSED[byte] ?? 0)));
  return Buffer.from(reversed)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const REVERSED = Array.from({ length: 256 }, (_, byte) =>
  Number.parseInt([...byte.toString(2).padStart(8, "0")].reverse().join(""), 2),
);

/** Kinds and names under which a resource of the product may be served now, the likeliest first. */
export function presentNames({ kind, name }: { readonly kind: string; readonly name: string }): readonly {
  readonly kind: string;
  readonly name: string;
}[] {
  if (AGENT_CONFIGURATIONS.includes(kind)) return AGENT_CONFIGURATIONS.map((each) => ({ kind: each, name }));
  if (!isInTier(kind)) return [{ kind, name }];
  // Policies have the name of their tier as a prefix in some releases.
  const other = name.startsWith(TIER) ? name.slice(TIER.length) : `${TIER}${name}`;
  return [name, other].map((each) => ({ kind, name: each }));
}

/** The former kind is served again after a rollback. */
const AGENT_CONFIGURATIONS: readonly string[] = ["NodeAgentConfiguration", FORMER_AGENT_CONFIGURATION.kind];
const TIER = "default.";

/** They are stored anew, or were shown by an aggregated API that goes. */
export function willChangeUids({ storage, hasAggregatedApi }: Pick<Facts, "storage" | "hasAggregatedApi">): boolean {
  return storage === "former" || hasAggregatedApi;
}

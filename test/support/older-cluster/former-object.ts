/**
 * How earlier releases stored a resource of `vendor.org/v3` as an object of `crd.vendor.org/v1`: its metadata as JSON in an
 * annotation, a policy under a name with its tier. Written from what is known of them, and apart from the product's own code.
 */
import { API_VERSION, apiVersionOf, identity } from "../../../src/identity.ts";
import { FORMER_API } from "../../../src/upgrade/former-names.ts";
import type { FormerKind } from "./former-definitions.ts";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
export type AnyObject = any;

/** "identity": both APIs show the same UID. "bit-reversed": as of v3.28, the bits of each byte are reversed. */
export type UidMode = "identity" | "bit-reversed";

const METADATA = `${identity.labelPrefix}metadata`;
const TIER = "default.";

/** What the aggregated API shows of a stored object. */
export function toServed(stored: AnyObject, kind: FormerKind, mode: UidMode): AnyObject {
  const { annotations = {}, ...real } = stored.metadata;
  const hidden = annotations[METADATA] === undefined ? {} : JSON.parse(annotations[METADATA]);
  const { name, namespace, resourceVersion, creationTimestamp, deletionTimestamp, finalizers, managedFields } = real;
  const metadata = defined({
    ...hidden,
    name: kind.isPolicy && name.startsWith(TIER) ? name.slice(TIER.length) : name,
    namespace,
    uid: servedUid(real.uid, mode),
    resourceVersion,
    creationTimestamp,
    deletionTimestamp,
    finalizers,
    managedFields,
  });
  return { ...stored, apiVersion: API_VERSION, kind: kind.kind, metadata };
}

/** How it is stored. */
export function toStored(served: AnyObject, kind: FormerKind, mode: UidMode): AnyObject {
  const { name, namespace, uid, resourceVersion, finalizers, managedFields: _, ...hidden } = served.metadata;
  const metadata = defined({
    name: storedName(name, kind),
    namespace,
    uid: uid === undefined ? undefined : servedUid(uid, mode),
    resourceVersion,
    finalizers,
    labels: hidden.labels,
    annotations: { [METADATA]: JSON.stringify({ ...hidden, ...(uid === undefined ? {} : { uid }) }) },
  });
  return { ...served, apiVersion: apiVersionOf(FORMER_API), kind: kind.kind, metadata };
}

export function storedName(name: string, { isPolicy }: FormerKind): string {
  return isPolicy && !name.startsWith(TIER) ? `${TIER}${name}` : name;
}

/** The same function in both directions. */
export function servedUid(uid: string, mode: UidMode): string {
  if (mode === "identity") return uid;
  const bytes = Buffer.from(uid.replaceAll("-", ""), "hex");
  // The bytes of the version and the variant stay.
  const reversed = bytes.map((byte, index) => (index === 6 || index === 8 ? byte : reverseBits(byte)));
  const hex = Buffer.from(reversed).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function reverseBits(byte: number): number {
  return Number.parseInt(byte.toString(2).padStart(8, "0").split("").reverse().join(""), 2);
}

function defined(fields: AnyObject): AnyObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/**
 * The annotations of pods and namespaces, and what they request. One table:
 * `docs/annotations.md` is generated from it.
 *
 * Annotations take precedence over the requests of the runtime and over the network
 * config (ipam/address-requests.ts). One that cannot be honoured fails the ADD: a pod must
 * not run with another address than it requests. Pure.
 */
import type { NetworkConfig } from "../config/network-config.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { type Address, type Family, formatAddress } from "../ip/address.ts";
import type { Prefix } from "../ip/prefix.ts";
import type { PoolRequest } from "../ipam/address-requests.ts";
import { nearestName } from "../model/nearest-name.ts";
import { RECORDED_ANNOTATIONS } from "../model/recorded-annotations.ts";
import { quoted } from "../quote.ts";
import {
  atMost,
  type Decoded,
  decodeAddresses,
  decodeDuration,
  decodeFamilies,
  decodeFlag,
  decodeListName,
  decodeMac,
  decodePodAddresses,
  decodePools,
  decodePrefixes,
  type WrittenDuration,
} from "./annotation-values.ts";

export interface AnnotationRow {
  readonly on: "pod" | "pod or namespace";
  readonly value: string;
  readonly example: string;
  readonly effect: string;
  /** The switch of the network config without which it is refused. */
  readonly feature?: FeatureName;
  /** A request to IPAM, which only our own IPAM plugin can serve. */
  readonly needs?: "own IPAM";
}

type FeatureName = "ip_addrs_no_ipam" | "floating_ips" | "allowed_source_prefixes";

export const ANNOTATIONS = {
  ipv4pools: {
    on: "pod or namespace",
    value: "names or CIDRs of IPv4 pools",
    example: '["blue", "10.1.0.0/16"]',
    effect: "The IPv4 address comes from one of these pools, whatever their node selectors are",
    needs: "own IPAM",
  },
  ipv6pools: {
    on: "pod or namespace",
    value: "names or CIDRs of IPv6 pools",
    example: '["blue6"]',
    effect: "The same for the IPv6 address, if the network assigns one",
    needs: "own IPAM",
  },
  ipFamilies: {
    on: "pod or namespace",
    value: "IPv4, IPv6, or both",
    example: '["IPv6"]',
    effect:
      "The pod gets one address of each of these families and none of another, whatever `ipam.assign_ipv4` and `ipam.assign_ipv6` of the network config say",
    needs: "own IPAM",
  },
  ipAddrs: {
    on: "pod",
    value: "one IPv4 address, one IPv6 address, or one of each",
    example: '["10.1.0.5", "fd00::5"]',
    effect: "The pod gets these addresses and no others, assigned by IPAM; each must be in an enabled pool",
    needs: "own IPAM",
  },
  ipAddrsFrom: {
    on: "pod",
    value: "the name of an [IPAddressList](ipam.md#lists-of-addresses), not in a list",
    example: "web",
    effect:
      "The pod gets the first free address of each family of this list, and no others: for pods of a Deployment, whose names change",
    needs: "own IPAM",
  },
  keepAddresses: {
    on: "pod or namespace",
    value: "`true` or `false`, not in a list",
    example: '"true"',
    effect:
      "The pod gets its addresses back when it is deleted and created again, on any node ([addresses that stay](ipam.md#addresses-that-stay)): pods of a StatefulSet, pods that somebody made under a name of their own, static pods, and virtual machines; on a pod itself also one of another owner, by its name. Takes precedence over `keepAddresses` of the pool",
    needs: "own IPAM",
  },
  keepFor: {
    on: "pod or namespace",
    value: "a duration, not in a list",
    example: "72h",
    effect:
      "How long kept addresses wait for the pod (default: `keepFor` of the pool, else 24h), at most `longestKeepFor` of the IPAMConfiguration (default: 168h). For pods of a StatefulSet and virtual machines there is no limit, because the controllers see their end, and `0s` means until then. Read at each ADD",
    needs: "own IPAM",
  },
  ipAddrsNoIpam: {
    on: "pod",
    value: "one IPv4 address, one IPv6 address, or one of each",
    example: '["192.0.2.5"]',
    effect:
      "The pod gets these addresses and no others; IPAM neither checks nor records them. Other hosts learn a route to them only if they are in a [pool without a tunnel or in IPIP mode](routing.md#what-is-announced), not in VXLAN mode or outside pools; the log of the ADD and `ipam explain` say so",
    feature: "ip_addrs_no_ipam",
    needs: "own IPAM",
  },
  floatingIPs: {
    on: "pod",
    value: "addresses",
    example: '["192.0.2.80"]',
    effect:
      "Connections to these addresses lead to the pod's address of the same family ([floating IPs](nat.md#floating-ips)); they are recorded as `ipNATs` of its WorkloadEndpoint. Needs the node agent. Other hosts learn a route to them as to those of `ipAddrsNoIpam`",
    feature: "floating_ips",
  },
  hwAddr: {
    on: "pod",
    value: "a MAC address, not in a list",
    example: "02:42:ac:11:00:02",
    effect: "The MAC address of the pod's interface",
  },
  allowedSourcePrefixes: {
    on: "pod",
    value: "CIDRs of IPv4 or IPv6",
    example: '["198.51.100.0/24"]',
    effect:
      "The pod may also send from these sources, except for addresses of pools and nodes ([which](#source-prefixes)); they are recorded as `allowSpoofedSourcePrefixes` of its WorkloadEndpoint. Needs the node agent",
    feature: "allowed_source_prefixes",
  },
} as const satisfies Readonly<Record<string, AnnotationRow>>;

export type AnnotationName = keyof typeof ANNOTATIONS;
export type Annotations = Readonly<Record<string, string>>;

export function annotationKey(name: AnnotationName): string {
  return `${identity.annotationPrefix}${name}`;
}

/** What the annotations of a pod and its namespace say. */
export interface AnnotatedPod {
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Annotations;
  readonly namespaceAnnotations: Annotations;
}

/** What the network allows. */
export interface AnnotationLimits {
  readonly features: NetworkConfig["features"];
  readonly ipamType: string;
  /** Of a list that the endpoint gets: model/recorded-annotations.ts. */
  readonly mostRecordedValues: number;
}

/** A value, and where it is written, for messages. */
export interface Annotated<Value> {
  readonly value: Value;
  readonly place: string;
}

export interface AnnotationRequests {
  readonly pools: Readonly<Partial<Record<Family, PoolRequest>>>;
  /** Each once; the pod gets an address of each, and none of another. */
  readonly families?: Annotated<readonly Family[]>;
  /** By IPAM. */
  readonly addresses?: Annotated<readonly Address[]>;
  /** The name of an IPAddressList. */
  readonly list?: Annotated<string>;
  readonly addressesWithoutIpam?: Annotated<readonly Address[]>;
  readonly keepAddresses?: Annotated<boolean> & { readonly on: "pod" | "namespace" };
  readonly keepFor?: Annotated<WrittenDuration>;
  readonly floatingAddresses?: Annotated<readonly Address[]>;
  readonly mac?: Annotated<Uint8Array>;
  /** Sources beside the pod's own addresses. */
  readonly sourcePrefixes?: Annotated<readonly Prefix[]>;
}

/** Throws if an annotation is malformed, or if the network does not allow it. */
export function annotationRequests(pod: AnnotatedPod, limits: AnnotationLimits): AnnotationRequests {
  for (const name of NAMES) requireAllowed(find(pod, name), name, limits);
  requireOnlyOne(pod);
  const most = limits.mostRecordedValues;
  const pools4 = poolRequest(pod, 4);
  const pools6 = poolRequest(pod, 6);
  const families = decoded(pod, "ipFamilies", decodeFamilies);
  const addresses = decoded(pod, "ipAddrs", decodePodAddresses);
  const list = decoded(pod, "ipAddrsFrom", decodeListName);
  const addressesWithoutIpam = decoded(pod, "ipAddrsNoIpam", decodePodAddresses);
  requireFamilies(pod, families);
  const keepAddresses = decoded(pod, "keepAddresses", decodeFlag);
  const keepFor = decoded(pod, "keepFor", decodeDuration);
  const floatingAddresses = decoded(pod, "floatingIPs", (text) => atMost(most, decodeAddresses(text)));
  const mac = decoded(pod, "hwAddr", decodeMac);
  const sourcePrefixes = decoded(pod, "allowedSourcePrefixes", (text) => atMost(most, decodePrefixes(text)));
  return {
    pools: { ...(pools4 && { 4: pools4 }), ...(pools6 && { 6: pools6 }) },
    ...(families && { families }),
    ...(addresses && { addresses }),
    ...(list && { list }),
    ...(addressesWithoutIpam && { addressesWithoutIpam }),
    ...(keepAddresses && { keepAddresses: { ...keepAddresses, on: writtenOn(pod, "keepAddresses") } }),
    ...(keepFor && { keepFor }),
    ...(floatingAddresses && { floatingAddresses }),
    ...(mac && { mac }),
    ...(sourcePrefixes && { sourcePrefixes }),
  };
}

const NAMES = Object.keys(ANNOTATIONS) as readonly AnnotationName[];

/** Annotations with the product's prefix that have no effect: to be logged at WARNING. */
export function uselessAnnotations({ annotations, namespaceAnnotations, ...pod }: AnnotatedPod): readonly string[] {
  const useless = (found: Annotations, on: "pod" | "namespace") =>
    Object.keys(found)
      .filter((key) => key.startsWith(identity.annotationPrefix))
      .flatMap((key) => {
        const reason = uselessBecause(key.slice(identity.annotationPrefix.length), on);
        return reason === undefined ? [] : `${placeOf(key, on, pod)} has no effect: ${reason}`;
      });
  return [...useless(annotations, "pod"), ...useless(namespaceAnnotations, "namespace")];
}

function uselessBecause(name: string, on: "pod" | "namespace"): string | undefined {
  const known = NAMES.find((each) => each === name);
  if (known !== undefined) {
    return on === "pod" || ANNOTATIONS[known].on === "pod or namespace" ? undefined : "it is read on pods only";
  }
  if (RECORDED.has(name)) return undefined;
  const nearest = nearestName(name, NAMES);
  return `it is not known${nearest === undefined ? "" : `; did you mean "${annotationKey(nearest)}"?`}`;
}

/** In which the product itself records a pod's addresses. */
const RECORDED: ReadonlySet<string> = new Set(RECORDED_ANNOTATIONS);

/** An annotation as it is written, and where, for messages. */
export interface Written {
  readonly text: string;
  readonly place: string;
}

/** Each place where the annotation is written; the first one takes precedence as a whole. */
export function writtenAnnotations(pod: AnnotatedPod, name: AnnotationName): readonly Written[] {
  const key = annotationKey(name);
  const places = ANNOTATIONS[name].on === "pod" ? (["pod"] as const) : (["pod", "namespace"] as const);
  return places.flatMap((on) => {
    const text = (on === "pod" ? pod.annotations : pod.namespaceAnnotations)[key];
    return text === undefined ? [] : [{ text, place: placeOf(key, on, pod) }];
  });
}

function find(pod: AnnotatedPod, name: AnnotationName): Written | undefined {
  return writtenAnnotations(pod, name)[0];
}

/** Of an annotation that is written. */
function writtenOn({ annotations }: AnnotatedPod, name: AnnotationName): "pod" | "namespace" {
  return annotations[annotationKey(name)] === undefined ? "namespace" : "pod";
}

/** `annotation "cni.vendor.org/ipAddrs" of pod "default/web"` */
function placeOf(key: string, on: "pod" | "namespace", pod: Pick<AnnotatedPod, "namespace" | "name">): string {
  const owner = `pod "${pod.namespace}/${pod.name}"`;
  return `annotation "${key}" of ${on === "pod" ? owner : `namespace "${pod.namespace}" (${owner})`}`;
}

function requireAllowed(written: Written | undefined, name: AnnotationName, limits: AnnotationLimits): void {
  if (written === undefined) return;
  const { feature, needs }: AnnotationRow = ANNOTATIONS[name];
  if (needs === "own IPAM" && limits.ipamType !== identity.ipamType) {
    const rule = `requests for addresses and pools do not work with IPAM plugin ${quoted(limits.ipamType)}`;
    throw refusal(written, rule, `remove the annotation, or use "${identity.ipamType}" as "ipam.type"`);
  }
  if (feature === undefined || isEnabled(feature, limits)) return;
  const field = `"feature_control.${feature}"`;
  throw refusal(
    written,
    `${field} of the network config is not true`,
    `set ${field} to true, or remove the annotation`,
  );
}

function isEnabled(feature: FeatureName, { features }: AnnotationLimits): boolean {
  switch (feature) {
    case "ip_addrs_no_ipam":
      return features.ipAddrsNoIpam;
    case "floating_ips":
      return features.floatingIps;
    case "allowed_source_prefixes":
      return features.allowedSourcePrefixes;
  }
}

function requireOnlyOne(pod: AnnotatedPod): void {
  const [first, second] = (["ipAddrs", "ipAddrsFrom", "ipAddrsNoIpam"] as const).flatMap((name) => {
    const written = find(pod, name);
    return written === undefined ? [] : [{ name, written }];
  });
  if (first === undefined || second === undefined) return;
  const rule = `it is set together with "${annotationKey(first.name)}" ${quoted(first.written.text)}; only one of the two is allowed`;
  throw refusal(second.written, rule);
}

/** Addresses of a family that the pod shall not have. */
function requireFamilies(pod: AnnotatedPod, families: Annotated<readonly Family[]> | undefined): void {
  if (families === undefined) return;
  for (const name of ["ipAddrs", "ipAddrsNoIpam"] as const) {
    const written = find(pod, name);
    const given = decoded(pod, name, decodePodAddresses)?.value ?? [];
    const other = given.find(({ family }) => !families.value.includes(family));
    if (written === undefined || other === undefined) continue;
    const rule = `"${formatAddress(other)}" is of IPv${other.family}, which ${families.place} does not list`;
    throw refusal(written, rule, `remove the address, or add "IPv${other.family}" to that list`);
  }
}

function poolRequest(pod: AnnotatedPod, family: Family): PoolRequest | undefined {
  const found = decoded(pod, family === 4 ? "ipv4pools" : "ipv6pools", (text) => decodePools(text, family));
  return found && { pools: found.value, place: found.place };
}

function decoded<Value>(
  pod: AnnotatedPod,
  name: AnnotationName,
  decode: (text: string) => Decoded<Value>,
): Annotated<Value> | undefined {
  const written = find(pod, name);
  if (written === undefined) return undefined;
  const result = decode(written.text);
  if (!result.ok) throw refusal(written, result.rule);
  return { value: result.value, place: written.place };
}

function refusal({ text, place }: Written, rule: string, details = ""): PluginError {
  return new PluginError("annotation-invalid", `Cannot use ${place}: ${quoted(text)}: ${rule}`, { details });
}

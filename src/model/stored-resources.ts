/** Reads only the fields of resources that the allocator needs on every ADD (see stored.ts). */
import { type Address, parseAddress, unmapAddress } from "../ip/address.ts";
import { type Prefix, parsePrefix, parsePrefixOrAddress } from "../ip/prefix.ts";
import { defaultBlockSize } from "./block-sizes.ts";
import { isDuration, wholeSecondsOf } from "./duration.ts";
import type { IPAMConfiguration } from "./ipam-configuration.ts";
import { USUAL_KEEP_SECONDS } from "./kept-address.ts";
import { MACHINE_ANNOTATION, MACHINE_SINCE_ANNOTATION } from "./machine-annotation.ts";
import { type PoolAnnouncing, poolAnnouncing } from "./pool-announcement.ts";
import { whyPoolUnusable } from "./pool-checks.ts";
import { readStored } from "./stored.ts";
import { UPGRADE_LOCK_ANNOTATION } from "./upgrade-lock-annotation.ts";

export interface StoredPool {
  readonly name: string;
  readonly cidr: Prefix;
  readonly blockSize: number;
  readonly disabled: boolean;
  /** Empty if unknown. */
  readonly createdAt: string;
  /** Something of its spec was changed since it was created, maybe its block size. */
  readonly wasEdited: boolean;
  readonly natOutgoing: boolean;
  readonly nodeSelector: string;
  /** Absent: every namespace, and containers without a pod. */
  readonly namespaceSelector?: string;
  readonly allowedUses: readonly string[];
  /** Its own setting. */
  readonly cooldownSeconds?: number;
  /** Absent: it does not keep addresses by itself. */
  readonly keepForSeconds?: number;
  /** Nor for a pod that asks for it: its field says so. */
  readonly forbidsKeeping?: true;
  readonly announcing: PoolAnnouncing;
  /** Why nothing is assigned from it: an API server without validation rules accepted it. */
  readonly unusable: string | undefined;
}

const ALL_USES = ["Workload", "Tunnel"];

export function readStoredPool(text: string, key: string): StoredPool {
  const pool = readStored(text, "IPPool", key);
  const spec = pool.section("spec");
  const cidr = parsePrefix(spec.text("cidr"));
  if (cidr === undefined) throw spec.refusal("cidr", "a network");
  const uses = spec.texts("allowedUses");
  const blockSize = spec.integer("blockSize") ?? defaultBlockSize(cidr);
  const namespaceSelector = spec.text("namespaceSelector", "");
  const cooldownSeconds = spec.integer("cooldownSeconds");
  const modes = { vxlanMode: spec.text("vxlanMode", "Never"), ipipMode: spec.text("ipipMode", "Never") };
  return {
    name: pool.section("metadata").text("name"),
    cidr,
    blockSize,
    // Nothing is assigned from a pool that is being deleted.
    disabled: spec.flag("disabled", false) || pool.section("metadata").text("deletionTimestamp", "") !== "",
    createdAt: pool.section("metadata").text("creationTimestamp", ""),
    wasEdited: (pool.section("metadata").integer("generation") ?? 1) > 1,
    natOutgoing: spec.flag("natOutgoing", false),
    nodeSelector: spec.text("nodeSelector", "").trim() === "" ? "all()" : spec.text("nodeSelector"),
    ...(namespaceSelector.trim() === "" ? {} : { namespaceSelector }),
    ...(spec.flag("keepAddresses", false) ? { keepForSeconds: keepForSeconds(spec.text("keepFor", "")) } : {}),
    ...(spec.flag("keepAddresses", true) ? {} : { forbidsKeeping: true as const }),
    allowedUses: uses.length === 0 ? ALL_USES : uses,
    ...(cooldownSeconds === undefined ? {} : { cooldownSeconds }),
    announcing: poolAnnouncing({ ...modes, disableBGPExport: spec.flag("disableBGPExport", false) }),
    unusable: whyPoolUnusable(cidr, { ...modes, blockSize }),
  };
}

/** Nothing is refused because of how long an address waits afterwards. */
function keepForSeconds(text: string): number {
  return isDuration(text) ? wholeSecondsOf(text) : USUAL_KEEP_SECONDS;
}

export interface StoredNode {
  readonly labels: Readonly<Record<string, string>>;
  /** The identity of the machine that registered it; absent if it was registered without one. */
  readonly machine?: string;
  /** When that machine first registered it; empty if unknown. */
  readonly machineSince?: string;
  /** What the kubelet reported of its machine; only for a node of the cluster that no machine has registered. */
  readonly kubelet?: { readonly machineId: string; readonly since: string };
}

export function readStoredNode(text: string, key: string): StoredNode {
  const node = readStored(text, "Node", key);
  const metadata = node.section("metadata");
  const labels = metadata.section("labels").textMap();
  const annotations = metadata.section("annotations");
  const machine = annotations.text(MACHINE_ANNOTATION, "");
  if (machine === "") {
    const machineId = node.section("status").text("kubeletMachineID", "");
    if (machineId === "") return { labels };
    return { labels, kubelet: { machineId, since: metadata.text("creationTimestamp", "") } };
  }
  return { labels, machine, machineSince: annotations.text(MACHINE_SINCE_ANNOTATION, "") };
}

export function readStoredReservation(text: string, key: string): readonly Prefix[] {
  const spec = readStored(text, "IPReservation", key).section("spec");
  return spec.texts("reservedCIDRs").map((each) => {
    const prefix = parsePrefixOrAddress(each);
    if (prefix === undefined) throw spec.refusal("reservedCIDRs", "a list of addresses and networks");
    return prefix;
  });
}

export interface StoredAddressList {
  /** In their order. */
  readonly addresses: readonly Address[];
  readonly namespaceSelector: string;
}

export function readStoredAddressList(text: string, key: string): StoredAddressList {
  const spec = readStored(text, "IPAddressList", key).section("spec");
  const namespaceSelector = spec.text("namespaceSelector", "");
  const addresses = spec.texts("addresses").map((each) => {
    const address = parseAddress(each);
    if (address === undefined) throw spec.refusal("addresses", "a list of single addresses");
    return unmapAddress(address);
  });
  return { addresses, namespaceSelector: namespaceSelector.trim() === "" ? "all()" : namespaceSelector };
}

/** With its stored field names, and without the envelope of a resource. */
export function readStoredConfiguration(text: string, key: string): IPAMConfiguration["spec"] {
  const fields = readStored(text, "IPAMConfiguration", key);
  const cooldownSeconds = fields.integer("cooldownSeconds");
  const longestKeepFor = fields.text("longestKeepFor", "");
  return {
    strictAffinity: fields.flag("strict_affinity", false),
    autoAllocateBlocks: fields.flag("auto_allocate_blocks", false),
    maxBlocksPerHost: fields.integer("maxBlocksPerHost") ?? 0,
    ...(cooldownSeconds === undefined ? {} : { cooldownSeconds }),
    ...(longestKeepFor === "" ? {} : { longestKeepFor }),
  };
}

/** Only `false` means not ready. */
export function readStoredReadiness(text: string, key: string): boolean {
  return readStored(text, "ClusterInformation", key).section("spec").flag("datastoreReady", true);
}

/** Who unlocks the datastore again. */
export type LockOwner = "upgrade" | "others";

/** Of a datastore that is not ready. */
export function readLockOwner(text: string, key: string): LockOwner {
  const annotations = readStored(text, "ClusterInformation", key).section("metadata").section("annotations");
  return annotations.text(UPGRADE_LOCK_ANNOTATION, "") === "" ? "others" : "upgrade";
}

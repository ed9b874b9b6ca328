/**
 * What an ADD does about each conflict. Pure.
 *
 *   the owner's own records            replaced
 *   an owner whose container is gone   removed
 *   another interface of the same container   keeps the port: it forwards to the same container
 *   any other owner                    host-port-taken
 *   the pod's address recorded for another owner   taken over: the address is the pod's now
 */
import { PluginError } from "../../errors.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import { assignChanges, uncountChanges } from "./changes.ts";
import { type Claim, formatHostPort, isForAnyAddress } from "./claim.ts";
import { type Conflicts, claimKeys, type Rival } from "./conflicts.ts";
import { podKey, portKey } from "./elements.ts";
import { type OwnedElements, removeChanges } from "./owned-elements.ts";
import { isSameContainer, ownerText } from "./port-owner.ts";
import { claimsIn, type PortRecord, type RecordSet } from "./port-records.ts";
import { baseChanges, neighbourRule } from "./rules.ts";
import { SET, tableOf } from "./table.ts";

export interface AssignmentPlan {
  readonly changes: readonly NftChange[];
  /** Ports that another interface of the same container has already. */
  readonly leftToSibling: readonly Claim[];
  /** Ports of single addresses that are released by the changes. */
  readonly released: readonly Claim[];
}

export function planAssignment(recordSet: RecordSet, conflicts: Conflicts): AssignmentPlan {
  const { wanted, leftToSibling, gone } = judgeClaims(recordSet, conflicts);
  const removed = [conflicts.own, ...gone];
  const changes = [
    ...repairChanges(recordSet, conflicts),
    ...removed.flatMap(removeChanges),
    ...takeOverPodAddresses(recordSet, conflicts, removed),
  ];
  for (const claim of claimsIn({ records: wanted })) {
    if (isForAnyAddress(claim) && conflicts.heldPerAddress.has(portKey(claim).toHex())) {
      changes.push(...uncountChanges(claim));
    }
  }
  if (claimsIn({ records: wanted }).length > 0) changes.push(...assignChanges({ ...recordSet, records: wanted }));
  const released = removed.flatMap(claimsIn).filter((claim) => !isForAnyAddress(claim));
  return { changes, leftToSibling, released };
}

interface Judgement {
  readonly wanted: readonly PortRecord[];
  readonly leftToSibling: readonly Claim[];
  readonly gone: readonly OwnedElements[];
}

function judgeClaims({ owner, records }: RecordSet, { rivals }: Conflicts): Judgement {
  const wanted: PortRecord[] = [];
  const leftToSibling: Claim[] = [];
  const gone = new Map<string, OwnedElements>();
  for (const record of records) {
    const met = record.kind === "port" ? claimKeys(record.claim).flatMap((key) => rivals.get(key.toHex()) ?? []) : [];
    if (record.kind === "source" || met.length === 0) {
      wanted.push(record);
      continue;
    }
    const sibling = met.find(({ kept }) => isSameContainer(kept.id, owner.id));
    if (sibling !== undefined) {
      leftToSibling.push(record.claim);
      continue;
    }
    for (const rival of met) {
      if (!rival.isGone) throw taken(record.claim, rival);
      gone.set(rival.kept.id.toHex(), rival.kept);
    }
    wanted.push(record);
  }
  return { wanted, leftToSibling, gone: [...gone.values()] };
}

function taken(claim: Claim, { name }: Rival): PluginError {
  const message = `Cannot map host port ${formatHostPort(claim)}: it belongs to ${ownerText(name)}`;
  return new PluginError("host-port-taken", message, { details: "choose another host port, or remove that container" });
}

/** The whole table if it is missing or was changed; otherwise only the rules of new prefix lengths. */
function repairChanges({ family }: RecordSet, { base, lengths }: Conflicts): NftChange[] {
  if (!base.isIntact) return baseChanges(family, lengths);
  return lengths
    .filter((length) => !base.neighbourLengths.includes(length))
    .map((length) => ({ kind: "add-rule", table: tableOf(family), rule: neighbourRule(family, length) }));
}

/** Masqueraded sources of the address's previous owner are removed with it. */
function takeOverPodAddresses(
  { family, records }: RecordSet,
  { rivals }: Conflicts,
  removed: readonly OwnedElements[],
): NftChange[] {
  const table = tableOf(family);
  const changes: NftChange[] = [];
  const done = new Set<string>();
  for (const record of records) {
    if (record.kind !== "source") continue;
    const key = podKey(record.masqueraded.podAddress);
    const [rival] = rivals.get(key.toHex()) ?? [];
    if (rival === undefined || removed.includes(rival.kept) || done.has(key.toHex())) continue;
    done.add(key.toHex());
    const sources = rival.kept.keys[SET.sources] ?? [];
    changes.push({ kind: "delete-elements", table, set: SET.owners, elements: [{ key }] });
    if (sources.length === 0) continue;
    changes.push({
      kind: "delete-elements",
      table,
      set: SET.sources,
      elements: sources.map((each) => ({ key: each })),
    });
  }
  return changes;
}

/**
 * What an ADD does about everything in its way. Pure.
 *
 *   the owner's own past          replaced
 *   an owner whose container is gone   removed
 *   another interface of the same container   keeps the port: it leads to the same container
 *   any other owner               host-port-taken
 *   the pod's address under another's name   taken over: the address is the pod's now
 */
import { PluginError } from "../../errors.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import { isSameContainer } from "./attachment.ts";
import { takeChanges, uncountChanges } from "./changes.ts";
import { type Claim, formatHostPort, isForAnyAddress } from "./claim.ts";
import { podKey, portKey } from "./elements.ts";
import type { Holding, KeptRecord } from "./holding.ts";
import { type Kept, removeChanges } from "./kept.ts";
import { baseChanges, neighbourRule } from "./rules.ts";
import { claimKeys, type Rival, type Situation } from "./situation.ts";
import { SET, tableOf } from "./table.ts";

export interface TakePlan {
  readonly changes: readonly NftChange[];
  /** Ports that another interface of the same container has already. */
  readonly leftToSibling: readonly Claim[];
  /** Ports of single addresses that were given up on the way. */
  readonly released: readonly Claim[];
}

export function planTake(holding: Holding, situation: Situation): TakePlan {
  const { wanted, leftToSibling, gone } = judgeClaims(holding, situation);
  const removed = [situation.own, ...gone];
  const changes = [
    ...repairChanges(holding, situation),
    ...removed.flatMap(removeChanges),
    ...takeOverPods(holding, situation, removed),
  ];
  for (const claim of claimsIn(wanted)) {
    if (isForAnyAddress(claim) && situation.heldPerAddress.has(portKey(claim).toHex())) {
      changes.push(...uncountChanges(claim));
    }
  }
  if (claimsIn(wanted).length > 0) changes.push(...takeChanges({ ...holding, records: wanted }));
  const released = removed.flatMap(({ records }) => claimsIn(records)).filter((claim) => !isForAnyAddress(claim));
  return { changes, leftToSibling, released };
}

interface Judgement {
  readonly wanted: readonly KeptRecord[];
  readonly leftToSibling: readonly Claim[];
  readonly gone: readonly Kept[];
}

function judgeClaims({ owner, records }: Holding, { rivals }: Situation): Judgement {
  const wanted: KeptRecord[] = [];
  const leftToSibling: Claim[] = [];
  const gone = new Map<string, Kept>();
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
  return new PluginError("host-port-taken", `Cannot map host port ${formatHostPort(claim)}: it belongs to "${name}"`, {
    details: name,
  });
}

/** The table where it is missing or was changed; else the rules of new prefix lengths alone. */
function repairChanges({ family }: Holding, { base, lengths }: Situation): NftChange[] {
  if (!base.isIntact) return baseChanges(family, lengths);
  return lengths
    .filter((length) => !base.neighbourLengths.includes(length))
    .map((length) => ({ kind: "add-rule", table: tableOf(family), rule: neighbourRule(family, length) }));
}

/** Sources hidden for the address's owner of before go with its name. */
function takeOverPods({ family, records }: Holding, { rivals }: Situation, removed: readonly Kept[]): NftChange[] {
  const table = tableOf(family);
  const changes: NftChange[] = [];
  const done = new Set<string>();
  for (const record of records) {
    if (record.kind !== "source") continue;
    const key = podKey(record.hidden.podAddress);
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

function claimsIn(records: readonly KeptRecord[]): readonly Claim[] {
  return records.flatMap((record) => (record.kind === "port" ? [record.claim] : []));
}

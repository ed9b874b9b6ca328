/**
 * Random sequences of batches: most of them are such that the model accepts them, since a refused one changes nothing and
 * shows little. For tests.
 */

import { isKernelError } from "../../../src/linux/kernel-error.ts";
import type { NetlinkSocket } from "../../../src/linux/netlink-socket.ts";
import { type Refusal, tryCommit } from "../../../src/linux/nftables/commit.ts";
import type { NftChange } from "../../../src/linux/nftables/ruleset.ts";
import type { Random } from "../../schedule/random.ts";
import { ModelSockets } from "./model-sockets.ts";
import { firstBatch, randomChange, randomKind } from "./random-changes.ts";

const BATCHES = 12;
const ATTEMPTS = 12;
const WILD = 0.35;

export function randomBatches(random: Random): readonly (readonly NftChange[])[] {
  const batches: (readonly NftChange[])[] = [firstBatch(random)];
  let guide = guideAfter(batches);
  while (batches.length <= BATCHES) {
    const length = 1 + random.below(random.chance(0.8) ? 4 : 12);
    const batch: NftChange[] = [];
    while (batch.length < length) {
      const change = findChange(random, guide, batch, "accepted");
      if (change !== undefined) batch.push(change);
    }
    const wild = random.chance(WILD) ? findChange(random, guideAfter(batches), batch, "refused") : undefined;
    if (wild !== undefined) batch.splice(random.below(batch.length + 1), 0, wild);
    batches.push(batch);
    if (wild !== undefined) guide = guideAfter(batches);
  }
  return batches;
}

interface Guide {
  readonly sockets: ModelSockets;
  readonly socket: NetlinkSocket;
}

/** A model that has got these batches. */
function guideAfter(batches: readonly (readonly NftChange[])[]): Guide {
  const sockets = new ModelSockets();
  const socket = sockets.open();
  for (const batch of batches) tryCommit(socket, batch);
  return { sockets, socket };
}

function findChange(
  random: Random,
  guide: Guide,
  batch: readonly NftChange[],
  wanted: "accepted" | "refused",
): NftChange | undefined {
  const kind = randomKind(random);
  // Most of what is refused names something that does not exist: the other reasons are rarer.
  const isAnyReason = random.chance(0.3);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const change = randomChange(random, kind, guide.sockets.state);
    if (batch.some((other) => deletesFromSame(other, change))) continue;
    const [refusal] = tryCommit(guide.socket, [change]);
    if (wanted === "accepted" ? refusal === undefined : refusal !== undefined && (isAnyReason || !isMissing(refusal)))
      return change;
  }
  return undefined;
}

/**
 * A range that is deleted, added and deleted again in one batch: the kernel then takes the first one for the second, and
 * refuses. The model does not, and the product never sends it.
 */
function deletesFromSame(left: NftChange, right: NftChange): boolean {
  const [one, other] = [setWithDeleted(left), setWithDeleted(right)];
  return one !== undefined && one === other;
}

function setWithDeleted(change: NftChange): string | undefined {
  const isDeletion =
    change.kind === "delete-elements" || change.kind === "destroy-elements" || change.kind === "flush-set";
  return isDeletion ? `${change.table.family} ${change.table.name} ${change.set}` : undefined;
}

function isMissing({ error }: Refusal): boolean {
  return isKernelError(error, "ENOENT");
}

/**
 * Gives back what an owner holds: every address of the handle, or of one
 * interface of it. Nothing held is success. A handle that names blocks which
 * know nothing of it, left by a crash, goes too.
 */
import type { Decision } from "../../datastore/datastore.ts";
import type { Address } from "../../ip/address.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { isWaiting } from "../../model/kept-address.ts";
import {
  addressAt,
  attributesOf,
  handlesOf,
  type Owner,
  ordinalsOf,
  type ReleaseManner,
  releaseOrdinals,
} from "../block.ts";
import type { Facts } from "../facts.ts";
import { changesToGive } from "../handle.ts";
import type { ReleaseHandleRequest } from "../request.ts";
import { type KnownBlock, View } from "../view.ts";
import { changeAfterRelease } from "./block-after-release.ts";

export interface ReleaseOutcome {
  readonly released: readonly Address[];
  /** The blocks as they are after the commit. */
  readonly blocks: readonly IPAMBlock[];
}

export function decideReleaseHandle(owner: ReleaseHandleRequest, facts: Facts, now: Date): Decision<ReleaseOutcome> {
  const view = new View(facts, owner.node);
  const handles = handlesOf(owner);
  const unread = handles
    .flatMap((handle) => view.handleBlocks(handle))
    .filter((cidr) => view.block(cidr).kind === "unknown");
  if (unread.length > 0) return { kind: "read", wanted: unread.map((cidr) => view.wantedBlock(cidr)) };

  const leaving = addressesToRelease(view, owner);
  const blocks = leaving.map(({ known, ordinals }) => releaseOrdinals(known.block, ordinals, now, owner.how));
  return {
    kind: "commit",
    // The blocks first: a store that stops half way leaves a handle that leads back to what is left.
    changes: [
      ...leaving.map(({ known }, index) => changeAfterRelease(blocks[index] ?? known.block, known.revision)),
      ...changesToGive(view, handles, blocks),
    ],
    outcome: {
      released: leaving.flatMap(({ known, ordinals }) => ordinals.map((ordinal) => addressAt(known.block, ordinal))),
      blocks,
    },
  };
}

interface Leaving {
  readonly known: KnownBlock;
  readonly ordinals: readonly number[];
}

function addressesToRelease(view: View, owner: ReleaseHandleRequest): readonly Leaving[] {
  const own = addressesOf(view, owner, owner.how);
  if (own.length > 0 || owner.ifNoneOnNode !== "release those of other nodes") return own;
  const { node: _, ...onAnyNode } = owner;
  return addressesOf(view, onAnyNode, owner.how);
}

/** What waits is released already, unless it is for good. */
function addressesOf(view: View, owner: Owner, how: ReleaseManner | undefined): readonly Leaving[] {
  const isHeld = ({ block }: KnownBlock, ordinal: number) =>
    how === "for good" || !isWaiting(attributesOf(block, ordinal));
  return [...view.knownBlocks()]
    .map((known) => ({ known, ordinals: ordinalsOf(known.block, owner).filter((each) => isHeld(known, each)) }))
    .filter(({ ordinals }) => ordinals.length > 0);
}

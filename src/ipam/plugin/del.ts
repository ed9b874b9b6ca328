/** DEL: gives back what the attachment holds; nothing held is success. */
import type { DelCall } from "../../cni/call.ts";
import { requireReady, WANTED_CLUSTER } from "../cluster.ts";
import { withFormerHandle } from "../former-handle.ts";
import { ownerOf } from "./owner.ts";
import { resultAddresses } from "./result-addresses.ts";
import type { Session, Surroundings } from "./session.ts";

export async function del(call: DelCall, session: Session, surroundings: Surroundings): Promise<void> {
  await session.allocator.releaseHandle(
    {
      ...ownerOf(call),
      ...withFormerHandle(call.containerId, session.node),
      node: session.node,
      likely: resultAddresses(call.prevResult),
    },
    {
      wanted: [WANTED_CLUSTER],
      // A bare datastore holds nothing that could be given back.
      changes: ([cluster]) =>
        requireReady(cluster, { whenBare: "accept", now: surroundings.now(), uid: surroundings.uuid() }),
    },
  );
}

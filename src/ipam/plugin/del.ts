/** DEL: releases the addresses of the attachment; if it has none, that is success. */
import type { DelCall } from "../../cni/call.ts";
import { attachmentOf, heldRequest } from "../attachment.ts";
import { requireReadyForReleasing, WANTED_CLUSTER } from "../cluster.ts";
import type { Session } from "../session.ts";
import { resultAddresses } from "./result-addresses.ts";

export async function del(call: DelCall, session: Session): Promise<void> {
  const allocator = await session.allocator();
  await allocator.releaseHandle(heldRequest(attachmentOf(call, session), resultAddresses(call.prevResult)), {
    wanted: [WANTED_CLUSTER],
    changes: ([cluster]) => {
      requireReadyForReleasing(cluster);
      return [];
    },
  });
}

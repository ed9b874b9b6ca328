/** DEL: releases the addresses of the attachment; if it has none, that is success. */
import type { DelCall } from "../../cni/call.ts";
import { releaseFields } from "../allocator.ts";
import { attachmentOf, releaseRequest } from "../attachment.ts";
import { readyForReleasing, WANTED_CLUSTER } from "../cluster.ts";
import type { Session } from "../session.ts";
import { resultAddresses } from "./result-addresses.ts";

export async function del(call: DelCall, session: Session): Promise<void> {
  const allocator = await session.allocator();
  const results = resultAddresses(call.prevResult);
  const evidence = { results, likely: results, hadLink: false };
  const released = await allocator.releaseHandle(releaseRequest(attachmentOf(call, session), evidence), {
    wanted: [WANTED_CLUSTER],
    changes: ([cluster]) => readyForReleasing(cluster),
  });
  session.note(await releaseFields(allocator, released));
}

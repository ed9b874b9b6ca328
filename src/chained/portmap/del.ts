/** DEL: removes everything the attachment has. Uses neither config nor result: both may be missing or wrong. */
import type { DelCall } from "../../cni/call.ts";
import { portFields } from "./claim.ts";
import { takeBackLoopbackSources } from "./loopback-sources.ts";
import { ownerOf } from "./port-owner.ts";
import { removeRecordFile } from "./record-file.ts";
import { releasePorts } from "./release.ts";
import type { Surroundings } from "./surroundings.ts";
import { forgetUdp } from "./udp.ts";

export async function del(call: DelCall, surroundings: Surroundings): Promise<void> {
  const { id } = ownerOf(call.networkName, call);
  const unremoved = failureToRemove(surroundings.runDirectory, id);
  const netfilter = await surroundings.loadNetfilter();
  await netfilter.withSocket(async (socket) => {
    const released = await releasePorts(socket, id);
    takeBackLoopbackSources(socket, released);
    for (const claim of released) forgetUdp(socket, claim, (message) => surroundings.log.warning(message));
    if (released.length > 0) surroundings.log.changed(portFields(released));
  });
  if (unremoved !== undefined) throw unremoved;
}

/** The ports are released although their record cannot be removed. */
function failureToRemove(runDirectory: string, id: Uint8Array): unknown {
  try {
    removeRecordFile(runDirectory, id);
    return undefined;
  } catch (failure) {
    return failure;
  }
}

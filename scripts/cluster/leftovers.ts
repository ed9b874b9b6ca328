/** What killed processes leave: cgroups and files. The kernel removes the rest with its private hosts. */
import { leftCgroups, sweepCgroups } from "../../test/support/cgroups.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { sweepDirectories } from "../../test/support/temporary-directory.ts";

/** Processes that the kernel ends a moment later may still use them. */
export async function removeLeftovers(): Promise<void> {
  const areGone = () => {
    sweepCgroups();
    sweepDirectories();
    return leftCgroups().length === 0;
  };
  await pollUntil(areGone, "the end of the cluster's processes");
}

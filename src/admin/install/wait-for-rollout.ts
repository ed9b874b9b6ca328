/** Follows the operator until an Installation is ready, and prints each change of a component. */

import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { INSTALLATION_PATH, OPERATOR_GROUP_PATH } from "../cluster/installation.ts";
import type { Clock, Terminal } from "../main/context.ts";
import { type Rollout, rolloutOf } from "./rollout.ts";

const POLL_MILLISECONDS = 1_000;

/** Returns the last state; "failed" may still become well, so it is waited for until the time is over. */
export async function waitForRollout(
  objects: ClusterObjects,
  context: Terminal & Clock,
  timeoutMilliseconds: number,
): Promise<Rollout> {
  const shown = new Set<string>();
  for (let waited = 0; ; waited += POLL_MILLISECONDS) {
    const [installation, statuses] = await Promise.all([
      objects.read(INSTALLATION_PATH),
      objects.list(`${OPERATOR_GROUP_PATH}/${identity.product}statuses`),
    ]);
    const rollout = rolloutOf(installation, statuses);
    for (const line of rollout.lines.filter((each) => !shown.has(each))) {
      shown.add(line);
      context.stdout(`${line}\n`);
    }
    if (rollout.state === "done" || waited >= timeoutMilliseconds) return rollout;
    await context.wait(POLL_MILLISECONDS);
  }
}

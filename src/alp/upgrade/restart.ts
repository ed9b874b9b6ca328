/** Restarts workloads in batches, so that the injector gives their pods the new sidecar, and waits for each. */
import { PluginError } from "../../errors.ts";
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { StepSite } from "../../upgrade/engine/step.ts";
import { listed } from "../../upgrade/engine/wording.ts";
import { type OutdatedWorkload, rolloutPending, titleOf, workloadPath } from "./outdated-workloads.ts";

const BATCH = 5;
const POLL_MILLISECONDS = 2_000;
const RESTARTED_AT = "kubectl.kubernetes.io/restartedAt";

/** `remaining`: those of the workloads that still have other pods than they should. */
export async function restartWorkloads(
  site: StepSite,
  workloads: readonly OutdatedWorkload[],
  remaining: () => Promise<readonly OutdatedWorkload[]>,
): Promise<void> {
  for (let first = 0; first < workloads.length; first += BATCH) {
    const batch = workloads.slice(first, first + BATCH);
    // After an interruption some are under way: they are not restarted a second time.
    await untilComplete(site, batch);
    const titles = new Set(batch.map(titleOf));
    const due = (await remaining()).filter((each) => titles.has(titleOf(each)));
    for (const workload of due) await restart(site, workload);
    await untilComplete(site, due);
    const still = (await remaining()).filter((each) => titles.has(titleOf(each)));
    if (still.length > 0) throw unchanged(still);
  }
}

async function restart(site: StepSite, workload: OutdatedWorkload): Promise<void> {
  const path = workloadPath(workload) ?? "";
  const object = await site.objects.read(path);
  if (object === undefined) return;
  const { uid } = isObject(object["metadata"]) ? object["metadata"] : {};
  site.progress(`Restarts ${titleOf(workload)}`);
  await site.objects.patch(path, {
    ...(uid === undefined ? {} : { metadata: { uid } }),
    spec: { template: { metadata: { annotations: { [RESTARTED_AT]: site.now().toISOString() } } } },
  });
}

async function untilComplete(site: StepSite, workloads: readonly OutdatedWorkload[]): Promise<void> {
  let last = "";
  let since = site.now().getTime();
  for (;;) {
    site.signal.throwIfAborted();
    const pending: string[] = [];
    for (const workload of workloads) {
      const object: Fields | undefined = await site.objects.read(workloadPath(workload) ?? "");
      const reason = object === undefined ? undefined : rolloutPending(workload.kind, object);
      if (reason !== undefined) pending.push(`${titleOf(workload)}: ${reason}`);
    }
    if (pending.length === 0) return;
    const text = pending.join("; ");
    if (text !== last) {
      [last, since] = [text, site.now().getTime()];
      site.progress(text);
    } else if (site.now().getTime() - since > site.options.stallSeconds * 1000) {
      throw new PluginError(
        "try-again-later",
        `Cannot go on: no progress for ${site.options.stallSeconds} seconds: ${text}`,
        { details: "look at the pods of the workload, then go on with the upgrade" },
      );
    }
    await site.wait(POLL_MILLISECONDS);
  }
}

function unchanged(workloads: readonly OutdatedWorkload[]): PluginError {
  return new PluginError(
    "try-again-later",
    `Cannot go on: the injector has not given the new sidecar to ${listed(workloads.map(titleOf))}`,
    {
      details:
        "the mesh reads a changed ConfigMap within some minutes; check its injector, then go on with the upgrade",
    },
  );
}

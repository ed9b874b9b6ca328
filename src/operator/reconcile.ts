/** One pass of the operator: installs, changes or removes, and reports what it found. */

import { PluginError } from "../errors.ts";
import { DEFAULT_NAME } from "../model/installation/installation.ts";
import { isBeingDeleted } from "../release/live-object.ts";
import { removeInstallation } from "./carry-out-deletion.ts";
import { workloadStates } from "./component-states.ts";
import { conditionsOf, degraded, summaryOf } from "./conditions.ts";
import { eventsOf, sendEvent } from "./events.ts";
import { type FollowedSnapshot, objectNamed } from "./followed-objects.ts";
import { install } from "./install.ts";
import type { Found, Pass, PassOptions } from "./pass.ts";
import { StatusWriter } from "./statuses.ts";

export class Reconciler {
  private readonly statuses: StatusWriter;
  private failuresInARow = 0;

  constructor(private readonly options: PassOptions) {
    this.statuses = new StatusWriter(options);
  }

  /** Throws if the pass has to be repeated soon; then the failure is in the status, unless it was the first. */
  async reconcile(snapshot: FollowedSnapshot): Promise<void> {
    const installation = objectNamed(snapshot, "installations", { name: DEFAULT_NAME });
    if (installation === undefined) {
      await this.options.records.close();
      await this.statuses.removeComponents(snapshot);
      return;
    }
    const pass = { snapshot, installation };
    try {
      const removeReports = () => this.statuses.removeComponents(snapshot);
      const found = isBeingDeleted(installation)
        ? await removeInstallation(this.options, pass, removeReports)
        : await install(this.options, pass);
      this.failuresInARow = 0;
      if (found !== "gone") await this.report(pass, found);
    } catch (failure) {
      this.failuresInARow += 1;
      // A lost race, or a permission that is not in force yet, is over at the next attempt.
      if (this.failuresInARow > 1) await this.report(pass, this.failed(pass, failure)).catch(() => {});
      throw failure;
    }
  }

  private failed({ snapshot, installation }: Pass, failure: unknown): Found {
    const message = failure instanceof Error ? failure.message : String(failure);
    const isUnread = failure instanceof PluginError && failure.kind === "datastore-unavailable";
    const state = degraded(isUnread ? "ResourceReadError" : "ResourceUpdateError", message);
    const { namespaces, applier } = this.options;
    const workloads = workloadStates(snapshot, namespaces, (object) => applier.latest(object));
    return { installation, components: { installation: state, ...workloads } };
  }

  private async report(
    { snapshot }: Pass,
    { installation, components, without = [], status = {} }: Found,
  ): Promise<void> {
    const { now, events } = this.options;
    const moment = { generation: installation.metadata.generation ?? 0, now: now() };
    await this.statuses.writeComponents(snapshot, components, moment);
    await this.statuses.removeComponents(snapshot, without);
    const before = this.statuses.conditionsOf(installation);
    const conditions = conditionsOf(summaryOf(components), before, moment, "Ready");
    await this.statuses.writeInstallation(installation, status, conditions);
    for (const event of eventsOf(before, conditions)) await sendEvent(events, installation, event);
  }
}

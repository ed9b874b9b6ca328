/**
 * Waits until the former operator has put its node agents back. Agents of this release follow the copies of the resources: if
 * these are deleted under them, they withdraw routes and policies.
 */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { quoted } from "../../quote.ts";
import { groupPath } from "../../release/object-kinds.ts";
import type { StepSite } from "../engine/step.ts";
import { guardedWait } from "../former-storage/guard-lock.ts";
import { waitForNodes } from "../nodes/wait-for-nodes.ts";
import { itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf } from "../pod-template.ts";

const DAEMON_SET = `${groupPath("apps/v1")}/namespaces/${identity.systemNamespace}/daemonsets/${identity.nodeAgent}`;

export async function waitForFormerAgents(site: StepSite): Promise<void> {
  const { version } = site.release;
  let missing = "";
  try {
    await waitForNodes(site, DAEMON_SET, {
      missingTemplate(daemonSet) {
        missing = presentTemplate(daemonSet, version);
        return missing;
      },
      ...guardedWait(site, "upgrade rollback"),
    });
  } catch (failure) {
    if (!(failure instanceof PluginError) || failure.kind !== "not-ready") throw failure;
    const state = `Cannot go back yet: node agents of ${version} still use the resources of this release`;
    // With the former template it is up to the nodes.
    if (missing === "")
      throw new PluginError("not-ready", `${state}. ${failure.message}`, { details: failure.details, cause: failure });
    const logs = `kubectl --namespace ${identity.operator} logs deployment/${identity.operator}`;
    throw new PluginError("not-ready", `${state}, and the former operator does not replace them. ${failure.message}`, {
      details: `see why (${logs}), and run upgrade rollback again`,
      cause: failure,
    });
  }
}

/** Empty if the template is not that of this release, whose operator names images by their tag. */
function presentTemplate(daemonSet: Fields | undefined, version: string): string {
  const image = textIn(named(itemsIn(podSpecOf(daemonSet), "containers"), identity.nodeAgent), "image");
  if (image === undefined) return "The DaemonSet has no container of the node agent";
  return image.endsWith(`:${version}`) ? `DaemonSet ${identity.nodeAgent} still has the image ${quoted(image)}` : "";
}

/** Waits for the operator: until its Deployment runs, and until it reports that everything does. */
import { PluginError } from "../../errors.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { listAt, textAt } from "../../release/live-object.ts";
import type { StepSite } from "../engine/step.ts";
import { numberAt } from "../object-fields.ts";
import { OPERATOR_DEPLOYMENT } from "./former-operator.ts";

const STATUSES = `/apis/${apiVersionOf(OPERATOR_API)}/${identity.product}statuses`;
const INSTALLATION = `/apis/${apiVersionOf(OPERATOR_API)}/installations/default`;

/** What the Deployment of the operator still lacks; `undefined` if it runs. */
export async function operatorWaitsFor(objects: ClusterObjects): Promise<string | undefined> {
  const deployment = await objects.read(OPERATOR_DEPLOYMENT);
  if (deployment === undefined) return "the Deployment of the operator does not exist";
  if (numberAt(deployment, 0, "status", "observedGeneration") < numberAt(deployment, 0, "metadata", "generation")) {
    return "the orchestrator has not taken note of the new Deployment of the operator";
  }
  const wanted = numberAt(deployment, 1, "spec", "replicas");
  const [updated, available] = ["updatedReplicas", "availableReplicas"].map((name) =>
    numberAt(deployment, 0, "status", name),
  );
  if (updated === wanted && available === wanted) return undefined;
  return `the operator has ${updated} of ${wanted} new pods, ${available} available`;
}

/** What the operator still reports as missing; `undefined` if everything of this release is available. */
export async function operatorReports(objects: ClusterObjects, version: string): Promise<string | undefined> {
  const installation = await objects.read(INSTALLATION);
  if (installation === undefined) return undefined;
  const installed = textAt(installation, "status", `${identity.product}Version`);
  if (installed !== version)
    return `the operator reports ${installed === "" ? "no version" : installed} as installed, not ${version}`;
  const unavailable = (await objects.list(STATUSES)).filter((status) => !isAvailable(status));
  if (unavailable.length === 0) return undefined;
  return unavailable.map((status) => `${textAt(status, "metadata", "name")}: ${messageOf(status)}`).join("; ");
}

const POLL_MILLISECONDS = 1_000;

/** Ends with the reason if the state stays the same for as long as the user allows. */
export async function untilNone(
  site: StepSite,
  what: string,
  reason: () => Promise<string | undefined>,
): Promise<void> {
  let last: string | undefined = "";
  let since = site.now().getTime();
  for (;;) {
    const found = await reason();
    if (found === undefined) return;
    if (found !== last) {
      site.progress(found);
      [last, since] = [found, site.now().getTime()];
    }
    if (site.now().getTime() - since >= site.options.stallSeconds * 1_000) {
      throw new PluginError(
        "try-again-later",
        `${what}: nothing has changed for ${site.options.stallSeconds} s; ${found}`,
        {
          details: `kubectl --namespace ${identity.operator} describe pods; kubectl get ${identity.product}statuses; then run apply again`,
        },
      );
    }
    await site.wait(POLL_MILLISECONDS);
  }
}

function isAvailable(status: Fields): boolean {
  return conditionsOf(status).some(({ type, status: value }) => type === "Available" && value === "True");
}

function messageOf(status: Fields): string {
  const [worst] = conditionsOf(status).filter(({ type, status: value }) => type !== "Available" && value === "True");
  return worst === undefined ? "not available" : String(worst["message"] ?? worst["reason"] ?? "not available");
}

function conditionsOf(status: Fields): readonly Fields[] {
  return listAt(status, "status", "conditions").filter(isObject);
}

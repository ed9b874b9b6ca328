/**
 * Who serves `vendor.org/v3`: the aggregated API of an earlier release, or the API server itself from the definitions.
 *
 * The APIService of the aggregated API names a Service. Without one the API server serves the group itself as soon as it
 * has noticed the change; it does not replace an APIService that somebody else created, so this one stays until it is
 * deleted, and is then created again by the API server.
 */
import { PluginError } from "../../../errors.ts";
import { API_VERSION } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { isObject } from "../../../model/shape.ts";
import type { StepSite } from "../../engine/step.ts";
import { FORMER_API_SERVER } from "../../former-names.ts";

export const API_SERVICE = `/apis/apiregistration.k8s.io/v1/apiservices/${FORMER_API_SERVER.apiService}`;
const BACKUP = "storage-api-service";
/** No aggregated API served it. */
const SERVED_BY_DEFINITIONS = `/apis/${API_VERSION}/ipamblocks`;

const POLL_MILLISECONDS = 500;
const LIMIT_MILLISECONDS = 60_000;
/** With several API servers, not all of them notice the change at once. */
const IN_A_ROW = 3;

type ApiSite = Pick<StepSite, "objects" | "backups" | "wait" | "progress">;

/** Whether the API server itself serves the group, as far as the APIService says. */
export async function isServedByDefinitions({ objects }: Pick<StepSite, "objects">): Promise<boolean> {
  return serviceOf(await objects.read(API_SERVICE)) === undefined;
}

/** Waits until all resources are served from their definitions. */
export async function serveDefinitions(site: ApiSite): Promise<void> {
  const before = await site.objects.read(API_SERVICE);
  if (serviceOf(before) !== undefined) {
    await site.backups.save(BACKUP, JSON.stringify(specOf(before)));
    // Certificates are valid only together with a Service.
    await site.objects.patch(API_SERVICE, { spec: { service: null, caBundle: null, insecureSkipTLSVerify: null } });
    site.progress(`${API_VERSION} is served from its definitions`);
  }
  for (let [waited, served] = [0, 0]; served < IN_A_ROW; waited += POLL_MILLISECONDS) {
    served = (await isListed(site)) ? served + 1 : 0;
    if (served === IN_A_ROW) return;
    if (waited >= LIMIT_MILLISECONDS) throw notServed();
    await site.wait(POLL_MILLISECONDS);
  }
}

/** The aggregated API serves the group again. No write if it does already, or never did. */
export async function serveAggregated({ objects, backups }: ApiSite): Promise<void> {
  const text = await backups.read(BACKUP);
  const now = await objects.read(API_SERVICE);
  if (text === undefined || now === undefined || serviceOf(now) !== undefined) return;
  const { service, caBundle, insecureSkipTLSVerify } = JSON.parse(text) as Fields;
  await objects.patch(API_SERVICE, { spec: { service, caBundle, insecureSkipTLSVerify } });
}

async function isListed({ objects }: ApiSite): Promise<boolean> {
  try {
    return (await objects.read(SERVED_BY_DEFINITIONS, { limit: "1" })) !== undefined;
  } catch (failure) {
    // Of the aggregated API, while the change is not noticed.
    if (failure instanceof PluginError) return false;
    throw failure;
  }
}

function notServed(): PluginError {
  return new PluginError(
    "try-again-later",
    `Cannot move the resources: the API server does not serve "${SERVED_BY_DEFINITIONS}"`,
    { details: `check the definitions, and: kubectl get apiservice ${FORMER_API_SERVER.apiService} -o yaml` },
  );
}

function specOf(apiService: Fields | undefined): Fields {
  const spec = apiService?.["spec"];
  return isObject(spec) ? spec : {};
}

function serviceOf(apiService: Fields | undefined): unknown {
  return specOf(apiService)["service"] ?? undefined;
}

/** The Installation of the cluster, as commands that do not change it see it. */
import { API_VERSION, apiVersionOf, OPERATOR_API } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { DEFAULT_NAME } from "../../model/installation/installation.ts";
import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { isObject } from "../../model/shape.ts";

export const OPERATOR_GROUP_PATH = `/apis/${apiVersionOf(OPERATOR_API)}`;
export const INSTALLATION_PATH = `${OPERATOR_GROUP_PATH}/installations/${DEFAULT_NAME}`;

/** The pools of the datastore `kubernetes`. */
export const POOLS_PATH = `/apis/${API_VERSION}/ippools`;

/** Whether the Installation says that pods have no host ports. */
export async function hasNoHostPorts(objects: ClusterObjects): Promise<boolean> {
  const spec = (await objects.read(INSTALLATION_PATH))?.["spec"];
  const network = isObject(spec) ? spec[NETWORK_FIELD] : undefined;
  return isObject(network) && network["hostPorts"] === "Disabled";
}

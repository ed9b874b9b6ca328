/** What the API of flows says about itself, as the API server and kubectl ask for it. Pure. */

import { FLOW_PATHS, type FlowPath } from "../../flows/flow-request.ts";
import { apiVersionOf, FLOWS_API } from "../../identity.ts";

const { group, version } = FLOWS_API;
const GROUP_VERSION = apiVersionOf(FLOWS_API);
const PREFERRED = { groupVersion: GROUP_VERSION, version };
const GROUP = { name: group, versions: [PREFERRED], preferredVersion: PREFERRED };

const KINDS: Readonly<Record<FlowPath, string>> = {
  flows: "Flow",
  rollups: "FlowRollup",
  explanation: "FlowExplanation",
};

/**
 * By path. The verb is `get` alone: whoever lists or watches everything that can be listed, such as the garbage collector, would
 * expect other answers than lines.
 */
export const DISCOVERY: Readonly<Record<string, object>> = {
  "/apis": { kind: "APIGroupList", apiVersion: "v1", groups: [GROUP] },
  [`/apis/${group}`]: { kind: "APIGroup", apiVersion: "v1", ...GROUP },
  [`/apis/${GROUP_VERSION}`]: {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: GROUP_VERSION,
    resources: FLOW_PATHS.flatMap((name) => [
      { name, singularName: "", namespaced: true, kind: KINDS[name], verbs: ["get"] },
    ]),
  },
};

export interface FlowApiPath {
  readonly resource: FlowPath;
  /** Only flows with an end in it. */
  readonly namespace?: string;
}

const PATH = new RegExp(`^/apis/${RegExp.escape(GROUP_VERSION)}(?:/namespaces/([a-z0-9][a-z0-9.-]*))?/([a-z]+)$`);

/** `/apis/flows.example.org/v1/flows`, `/apis/flows.example.org/v1/namespaces/shop/flows` */
export function flowApiPath(path: string): FlowApiPath | undefined {
  const [, namespace, name] = PATH.exec(path) ?? [];
  const resource = FLOW_PATHS.find((each) => each === name);
  if (resource === undefined) return undefined;
  return { resource, ...(namespace === undefined ? {} : { namespace }) };
}

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
};

/** A refusal, as clients of the API read it. */
export function statusObject(code: number, message: string): object {
  const reason = REASONS[code] ?? "InternalError";
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
}

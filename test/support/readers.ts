/** An API server in memory whose readers have roles: it says who they are, what they may, and refuses the rest, as the real one does. */
import type { KubeAccess } from "../../src/config/kube-access.ts";
import { type FlowAnswer, flowLine } from "../../src/flows/flow-answer.ts";
import type { KubeClient, KubeLines, KubeRequest, KubeResponse } from "../../src/kube/api.ts";
import { targetOf } from "../../src/kube/request-target.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import type { FakeApi } from "./kube-api/fake-api.ts";

export interface Role {
  readonly user: string;
  readonly rules: readonly Rule[];
}

export interface Rule {
  /** `pods`, `ippools`, `*`. */
  readonly resources: readonly string[];
  /** Absent: of any group. */
  readonly groups?: readonly string[];
  readonly verbs?: readonly string[];
  /** Absent: all of them. */
  readonly namespaces?: readonly string[];
}

export const EVERYTHING: readonly Rule[] = [{ resources: ["*"], verbs: ["*"] }];

export interface ReadersCluster {
  openClient(access: KubeAccess): Promise<KubeClient & KubeLines>;
  /** By token; may be changed. */
  readonly roles: Map<string, Role>;
  /** Each with the token that it came with: `reader GET /api/v1/pods`. */
  readonly requests: string[];
}

/** What its API of flows sends to this reader; as long as there is more. */
export type SendFlows = (path: string, asked: AskedFlows) => Iterable<FlowAnswer> | AsyncIterable<FlowAnswer>;

export interface AskedFlows {
  readonly query: Readonly<Record<string, string>>;
  readonly role: Role;
  readonly signal: AbortSignal;
}

export function readersCluster(
  api: FakeApi,
  readers: Readonly<Record<string, Role>>,
  flows: SendFlows = () => [],
): ReadersCluster {
  const roles = new Map(Object.entries(readers));
  const requests: string[] = [];
  const refuse = (token: string, request: KubeRequest): KubeResponse | undefined => {
    requests.push(`${token} ${request.method} ${request.path}`);
    const role = roles.get(token);
    if (role === undefined) return failure(401, "Unauthorized", "Unauthorized");
    const { verb, group, resource, namespace } = targetOf(request);
    if (resource === "selfsubjectreviews")
      return { status: 201, text: JSON.stringify({ status: { userInfo: { username: role.user, groups: [] } } }) };
    if (resource === "selfsubjectaccessreviews") {
      const { resourceAttributes } = JSON.parse(request.body ?? "{}").spec;
      return { status: 201, text: JSON.stringify({ status: { allowed: isAllowed(role, resourceAttributes) } }) };
    }
    if (isAllowed(role, { verb, group, resource, namespace })) return undefined;
    return failure(
      403,
      "Forbidden",
      `User "${role.user}" cannot ${verb} resource "${resource}" in API group "${group}"`,
    );
  };
  return {
    roles,
    requests,
    async openClient({ token = "none" }) {
      const client = api.connect(async (request, send) => refuse(token, request) ?? send());
      return {
        ...client,
        async *lines(path, query, signal) {
          const request = { method: "GET", path } as const;
          const refusal = refuse(token, request);
          if (refusal !== undefined) requireOk(refusal, request);
          const role = roles.get(token);
          if (role === undefined) return;
          for await (const answer of flows(path, { query, role, signal })) yield flowLine(answer).trimEnd();
        },
      };
    },
  };
}

interface Asked {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly namespace?: string | undefined;
}

export function isAllowed({ rules }: Role, { verb, group = "", resource, namespace }: Asked): boolean {
  return rules.some(
    ({ resources, groups, verbs = ["get", "list", "watch"], namespaces }) =>
      (groups === undefined || groups.includes(group)) &&
      (resources.includes("*") || resources.includes(resource)) &&
      (verbs.includes("*") || verbs.includes(verb)) &&
      (namespaces === undefined || (namespace !== undefined && namespaces.includes(namespace))),
  );
}

function failure(code: number, reason: string, message: string): KubeResponse {
  return { status: code, text: JSON.stringify({ kind: "Status", status: "Failure", message, reason, code }) };
}

/**
 * The API of flows, if flows are on: how the API server and the node agents find the controllers, what both may do, and who may
 * read. The controllers make the certificates themselves, and write them into the APIService. Pure.
 */
import { FLOWS_API, identity } from "../../identity.ts";
import { flowTokenPolicy } from "../admission/node-policies.ts";
import type { KubeObject } from "../kube-object.ts";
import { clusterRoleObject, clusterRoleObjects, namespacedRoleObjects, type Place } from "../roles/role-objects.ts";
import { certificateRules, FLOW_READER_RULES, flowAgentNamespaceRules, flowControllersRules } from "../roles/rules.ts";
import {
  FLOW_AGENTS,
  FLOW_READER,
  FLOWS,
  FLOWS_API_PORT,
  FLOWS_API_SERVICE,
  FLOWS_LINK,
  FLOWS_LINK_PORT,
  podLabels,
} from "./names.ts";

const HTTPS = 443;

/** `limitsNodes`: whether the API server is to evaluate policies about accounts of nodes. */
export function flowApiObjects(
  namespace: string,
  { limitsNodes }: { readonly limitsNodes: boolean },
): readonly KubeObject[] {
  const controllers: Place = { name: identity.controllers, namespace };
  const agents: Place = { name: identity.nodeAgent, namespace };
  return [
    ...clusterRoleObjects(FLOWS, flowControllersRules(), controllers),
    ...namespacedRoleObjects({ name: FLOWS, namespace }, certificateRules(FLOWS), controllers),
    ...namespacedRoleObjects({ name: FLOW_AGENTS, namespace }, flowAgentNamespaceRules(), agents),
    ...(limitsNodes ? flowTokenPolicy() : []),
    reader(),
    service(namespace),
    apiService(namespace),
  ];
}

/** Whoever may view everything may read flows; an administrator binds it to others, who see what they may list. */
function reader(): KubeObject {
  const role = clusterRoleObject(FLOW_READER, FLOW_READER_RULES);
  return {
    ...role,
    metadata: { ...role.metadata, labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
  };
}

function service(namespace: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: FLOWS, namespace },
    spec: {
      selector: podLabels(identity.controllers),
      ports: [
        { name: "https", port: HTTPS, protocol: "TCP", targetPort: FLOWS_API_PORT },
        { name: FLOWS_LINK, port: FLOWS_LINK_PORT, protocol: "TCP", targetPort: FLOWS_LINK_PORT },
      ],
    },
  };
}

function apiService(namespace: string): KubeObject {
  const { group, version } = FLOWS_API;
  return {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: FLOWS_API_SERVICE },
    spec: {
      ...{ group, version, groupPriorityMinimum: 1000, versionPriority: 100 },
      service: { name: FLOWS, namespace, port: HTTPS },
    },
  };
}

/** ValidatingAdmissionPolicies and their bindings as objects of the orchestrator's API. Pure. */
import type { KubeObject } from "../kube-object.ts";

export const ADMISSION_GROUP = "admissionregistration.k8s.io";
export const ADMISSION_API = `${ADMISSION_GROUP}/v1`;

export type Validation = { readonly expression: string; readonly reason: "Forbidden" | "Invalid" } & (
  | { readonly message: string }
  | { readonly messageExpression: string }
);

export function policyObject(name: string, spec: object): KubeObject {
  return {
    apiVersion: ADMISSION_API,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: { failurePolicy: "Fail", ...spec },
  };
}

/** A binding of the same name. */
export function bindingObject(name: string, more: object = {}): KubeObject {
  return {
    apiVersion: ADMISSION_API,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, ...more, validationActions: ["Deny"] },
  };
}

export function matching(operations: readonly string[], resources: readonly string[], apiGroup = ""): object {
  const apiVersions = apiGroup === "" ? ["v1"] : ["*"];
  return { resourceRules: [{ apiGroups: [apiGroup], apiVersions, operations, resources }] };
}

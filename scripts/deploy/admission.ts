/**
 * The rules with which the API server keeps users from choosing arbitrary addresses
 * (docs/admission.md): which annotations are restricted, and the objects in
 * `deploy/admission/`, which are generated from this file.
 *
 *   <product>-address-list.yaml       ConfigMap: who may choose. The operator's own, created once
 *   <product>-address-policies.yaml   four policies with their bindings, applied at every upgrade
 *
 *   chosen-addresses             pods: only if the list permits the pod's namespace or service account
 *   chosen-addresses-elsewhere   subresources and bindings: never
 *   recorded-addresses           the plugin's own records in annotations are not forged
 *   address-list                 the list is well-formed, and it is not deleted
 *
 * The API server denies every request that the first policy matches if the list is
 * missing, whatever the conditions say. So that policy does not match pods/status:
 * without the reports of kubelets, all nodes would fail.
 */

import type { Identity } from "../../src/identity.ts";
import { RECORDED_ANNOTATIONS } from "../../src/model/recorded-annotations.ts";
import { ANNOTATIONS, type AnnotationRow } from "../../src/plugin/annotations.ts";
import { formatYaml } from "../../src/yaml.ts";
import {
  addsOrChanges,
  changes,
  constant,
  FORMER_ANNOTATIONS,
  isWellFormedLine,
  NEW_ANNOTATIONS,
  permits,
  REQUESTER_MAY_PATCH_STATUS,
  SUBJECTS,
  someOf,
} from "./admission-expressions.ts";

/** Annotations with which a pod chooses addresses that IPAM does not check, each with its own key in the list. */
const CHOSEN = Object.entries<AnnotationRow>(ANNOTATIONS)
  .filter(([, { restricted }]) => restricted === true)
  .map(([name]) => name);

const NAMESPACE = "kube-system";

type Validation = { readonly expression: string; readonly reason: "Forbidden" | "Invalid" } & (
  | { readonly message: string }
  | { readonly messageExpression: string }
);

export function addressListName({ product }: Identity): string {
  return `${product}-address-list`;
}

export function addressPoliciesName({ product }: Identity): string {
  return `${product}-address-policies`;
}

/** The list as it is installed: it permits nobody. */
export function addressListManifest(names: Identity): string {
  return `# Which pods may choose addresses that IPAM does not check; see docs/admission.md.
# One line for each: "namespace" permits all pods of a namespace, "namespace/service-account" those of one account.
# Generated from scripts/deploy/admission.ts.
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${addressListName(names)}
  namespace: ${NAMESPACE}
data:
${CHOSEN.map((name) => `  ${name}: |\n    # ${names.annotationPrefix}${name}\n`).join("")}`;
}

export function addressPoliciesManifest(names: Identity): string {
  const policies = [
    ...chosenAddresses(names),
    ...chosenElsewhere(names),
    ...recordedAddresses(names),
    ...addressList(names),
  ];
  return `# Users may not choose arbitrary addresses; see docs/admission.md. Create ${addressListName(names)}.yaml first.
# Generated from scripts/deploy/admission.ts.
${policies.map(formatYaml).join("---\n")}`;
}

function chosenAddresses(names: Identity): readonly object[] {
  const name = `${names.product}-chosen-addresses`;
  const keys = keysOf(CHOSEN, names);
  const list = `${NAMESPACE}/${addressListName(names)}`;
  return [
    policyObject(name, {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      matchConstraints: matching(["CREATE", "UPDATE"], ["pods"]),
      matchConditions: [{ name: "chooses-addresses", expression: someOf(keys) }],
      variables: [NEW_ANNOTATIONS, FORMER_ANNOTATIONS, SUBJECTS],
      validations: CHOSEN.map(
        (chosen): Validation => ({
          expression: `!(${addsOrChanges(`${names.annotationPrefix}${chosen}`)}) || ${permits(chosen)}`,
          messageExpression: [
            constant(
              `annotation "${names.annotationPrefix}${chosen}" is not permitted: key "${chosen}" of ConfigMap "${list}" contains neither namespace "`,
            ),
            "variables.subjects[0]",
            constant('" nor service account "'),
            "variables.subjects[1]",
            constant('"'),
          ].join(" + "),
          reason: "Forbidden",
        }),
      ),
    }),
    bindingObject(name, {
      paramRef: { name: addressListName(names), namespace: NAMESPACE, parameterNotFoundAction: "Deny" },
    }),
  ];
}

/** Every other way to set an annotation of a pod, also that of the scheduler. */
const OTHER_WAYS = ["pods/ephemeralcontainers", "pods/resize", "pods/binding", "bindings"] as const;

function chosenElsewhere(names: Identity): readonly object[] {
  const name = `${names.product}-chosen-addresses-elsewhere`;
  return [
    policyObject(name, {
      matchConstraints: matching(["CREATE", "UPDATE"], ["pods/status", ...OTHER_WAYS]),
      variables: [NEW_ANNOTATIONS, FORMER_ANNOTATIONS],
      validations: keysOf(CHOSEN, names).map(
        (key): Validation => ({
          expression: `!(${addsOrChanges(key)})`,
          message: `annotation "${key}" can be set only on the pod itself, not on a subresource`,
          reason: "Forbidden",
        }),
      ),
    }),
    bindingObject(name),
  ];
}

function recordedAddresses(names: Identity): readonly object[] {
  const name = `${names.product}-recorded-addresses`;
  return [
    policyObject(name, {
      // Not pods/status: whoever may patch that may record addresses.
      matchConstraints: matching(["CREATE", "UPDATE"], ["pods", ...OTHER_WAYS]),
      variables: [NEW_ANNOTATIONS, FORMER_ANNOTATIONS],
      validations: keysOf(RECORDED_ANNOTATIONS, names).map(
        (key): Validation => ({
          expression: `!(${changes(key)}) || ${REQUESTER_MAY_PATCH_STATUS}`,
          message: `annotation "${key}" records what the network plugin assigned: only those who may patch pods/status may set it`,
          reason: "Forbidden",
        }),
      ),
    }),
    bindingObject(name),
  ];
}

function addressList(names: Identity): readonly object[] {
  const name = addressListName(names);
  const known = `[${CHOSEN.map(constant).join(", ")}]`;
  return [
    policyObject(name, {
      matchConstraints: matching(["CREATE", "UPDATE", "DELETE"], ["configmaps"]),
      matchConditions: [
        {
          name: "is-the-list",
          expression: `request.namespace == ${constant(NAMESPACE)} && (object == null ? oldObject : object).metadata.name == ${constant(name)}`,
        },
      ],
      validations: [
        {
          expression: "object != null",
          message: `without this list no pod can be created or changed; delete ValidatingAdmissionPolicyBindings "${names.product}-chosen-addresses" and "${name}" first`,
          reason: "Forbidden",
        },
        {
          expression: `object == null || object.?data.orValue({}).all(key, key in ${known})`,
          message: `unknown key; the keys are ${CHOSEN.join(", ")}`,
          reason: "Invalid",
        },
        {
          expression: `object == null || object.?data.orValue({}).all(key, object.data[key].split('\\n').all(line, ${isWellFormedLine("line")}))`,
          message: 'each line must be "namespace", "namespace/service-account", empty or a comment that starts with #',
          reason: "Invalid",
        },
      ] satisfies readonly Validation[],
    }),
    bindingObject(name),
  ];
}

const API = "admissionregistration.k8s.io/v1";

function policyObject(name: string, spec: object): object {
  return {
    apiVersion: API,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: { failurePolicy: "Fail", ...spec },
  };
}

/** A binding of the same name. */
function bindingObject(name: string, more: object = {}): object {
  return {
    apiVersion: API,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, ...more, validationActions: ["Deny"] },
  };
}

function matching(operations: readonly string[], resources: readonly string[]): object {
  return { resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations, resources }] };
}

function keysOf(annotations: readonly string[], { annotationPrefix }: Identity): readonly string[] {
  return annotations.map((name) => `${annotationPrefix}${name}`);
}

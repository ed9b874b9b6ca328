/**
 * The rules with which the API server keeps users from choosing arbitrary addresses (docs/admission.md). Pure.
 *
 *   <product>-address-list       ConfigMap: who may choose. The administrator's own: no program of ours overwrites an entry
 *
 *   chosen-addresses             pods: only if the list permits the pod's namespace or service account
 *   chosen-addresses-elsewhere   subresources and bindings: never
 *   recorded-addresses           the plugin's own records in annotations are not forged
 *   address-list                 the list is well-formed, and it is not deleted while it permits somebody
 *
 * Without the list the API server skips the first policy (`parameterNotFoundAction: Allow`). With "Deny" it would refuse every
 * pod, also those that choose nothing: it looks for the list before it evaluates the conditions.
 */

import { identity } from "../../identity.ts";
import { CHOSEN_ANNOTATIONS, RECORDED_ANNOTATIONS } from "../../model/recorded-annotations.ts";
import type { KubeObject } from "../kube-object.ts";
import {
  addsOrChanges,
  changes,
  constant,
  FORMER_ANNOTATIONS,
  isEntry,
  isWellFormedLine,
  NEW_ANNOTATIONS,
  permits,
  REQUESTER_MAY_PATCH_STATUS,
  SUBJECTS,
  someOf,
} from "./expressions.ts";
import { bindingObject, matching, policyObject, type Validation } from "./policy-objects.ts";

const { product, annotationPrefix } = identity;

export const ADDRESS_LIST = { name: `${product}-address-list`, namespace: "kube-system" } as const;

/** The binding that makes the list count. */
export const CHOSEN_ADDRESSES = `${product}-chosen-addresses`;

/** Without `data`, so that applying it leaves the entries to the administrator. A missing key permits nobody. */
export function addressListObject(): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: ADDRESS_LIST };
}

export function isAddressList({ kind, metadata }: KubeObject): boolean {
  return kind === "ConfigMap" && metadata.name === ADDRESS_LIST.name && metadata.namespace === ADDRESS_LIST.namespace;
}

export function chosenAddressesPolicies(): readonly KubeObject[] {
  return [...chosenAddresses(), ...chosenElsewhere(), ...addressList()];
}

function chosenAddresses(): readonly KubeObject[] {
  const list = `${ADDRESS_LIST.namespace}/${ADDRESS_LIST.name}`;
  return [
    policyObject(CHOSEN_ADDRESSES, {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      matchConstraints: matching(["CREATE", "UPDATE"], ["pods"]),
      matchConditions: [{ name: "chooses-addresses", expression: someOf(keysOf(CHOSEN_ANNOTATIONS)) }],
      variables: [NEW_ANNOTATIONS, FORMER_ANNOTATIONS, SUBJECTS],
      validations: CHOSEN_ANNOTATIONS.map(
        (chosen): Validation => ({
          expression: `!(${addsOrChanges(`${annotationPrefix}${chosen}`)}) || ${permits(chosen)}`,
          messageExpression: [
            constant(
              `annotation "${annotationPrefix}${chosen}" is not permitted: key "${chosen}" of ConfigMap "${list}" contains neither namespace "`,
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
    bindingObject(CHOSEN_ADDRESSES, { paramRef: { ...ADDRESS_LIST, parameterNotFoundAction: "Allow" } }),
  ];
}

/** Every other way to set an annotation of a pod, also that of the scheduler. */
const OTHER_WAYS = ["pods/ephemeralcontainers", "pods/resize", "pods/binding", "bindings"] as const;

function chosenElsewhere(): readonly KubeObject[] {
  const name = `${product}-chosen-addresses-elsewhere`;
  return [
    policyObject(name, {
      matchConstraints: matching(["CREATE", "UPDATE"], ["pods/status", ...OTHER_WAYS]),
      variables: [NEW_ANNOTATIONS, FORMER_ANNOTATIONS],
      validations: keysOf(CHOSEN_ANNOTATIONS).map(
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

export function recordedAddressesPolicies(): readonly KubeObject[] {
  const name = `${product}-recorded-addresses`;
  return [
    policyObject(name, {
      // Not pods/status: who may patch that may record addresses.
      matchConstraints: matching(["CREATE", "UPDATE"], ["pods", ...OTHER_WAYS]),
      variables: [NEW_ANNOTATIONS, FORMER_ANNOTATIONS],
      validations: keysOf(RECORDED_ANNOTATIONS).map(
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

function addressList(): readonly KubeObject[] {
  const { name, namespace } = ADDRESS_LIST;
  const known = `[${CHOSEN_ANNOTATIONS.map(constant).join(", ")}]`;
  return [
    policyObject(name, {
      matchConstraints: matching(["CREATE", "UPDATE", "DELETE"], ["configmaps"]),
      matchConditions: [
        {
          name: "is-the-list",
          expression: `request.namespace == ${constant(namespace)} && (object == null ? oldObject : object).metadata.name == ${constant(name)}`,
        },
      ],
      validations: [
        {
          expression: `object != null || !oldObject.?data.orValue({}).exists(key, oldObject.data[key].split('\\n').exists(line, ${isEntry("line")}))`,
          message: `without this list every pod may choose addresses; remove its entries, or delete ValidatingAdmissionPolicyBindings "${CHOSEN_ADDRESSES}" and "${name}" first`,
          reason: "Forbidden",
        },
        {
          expression: `object == null || object.?data.orValue({}).all(key, key in ${known})`,
          message: `unknown key; the keys are ${CHOSEN_ANNOTATIONS.join(", ")}`,
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

function keysOf(annotations: readonly string[]): readonly string[] {
  return annotations.map((name) => `${annotationPrefix}${name}`);
}

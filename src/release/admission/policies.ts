/** The admission policies of an installation, in groups that an administrator can switch off one by one. Pure. */
import { identity } from "../../identity.ts";
import type { AdmissionGroup } from "../../model/installation/admission.ts";
import type { EffectiveInstallation } from "../installation/effective-installation.ts";
import type { KubeObject } from "../kube-object.ts";
import {
  ADDRESS_LIST,
  addressListObject,
  chosenAddressesPolicies,
  recordedAddressesPolicies,
} from "./address-policies.ts";
import { NODE_TOKENS, nodeAccountPolicies } from "./node-policies.ts";
import { bindingObject, matching, policyObject } from "./policy-objects.ts";

const GROUPS: Readonly<Record<AdmissionGroup, () => readonly KubeObject[]>> = {
  chosenAddresses: chosenAddressesPolicies,
  recordedAddresses: recordedAddressesPolicies,
  nodeAccounts: nodeAccountPolicies,
};

/** Of every policy and binding: selects the group. */
const GROUP_LABEL = "app.kubernetes.io/component";

export function policiesOf(group: AdmissionGroup): readonly KubeObject[] {
  const labels = { [GROUP_LABEL]: `admission-${group.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}` };
  return GROUPS[group]().map((object) => ({ ...object, metadata: { ...object.metadata, labels } }));
}

/**
 * The list stays if the policies are switched off: its entries are the administrator's. With etcd, tokens need not be bound: the
 * plugin's can only read, and Kubernetes 1.30, which such a cluster may have, cannot bind them.
 */
export function admissionObjects({ admissionPolicies, datastore }: AdmissionPlan): readonly KubeObject[] {
  const groups = Object.keys(GROUPS) as readonly AdmissionGroup[];
  const policies = groups.filter((group) => admissionPolicies[group]).flatMap(policiesOf);
  const needsTokens = datastore.type !== "Etcd";
  return [
    addressListObject(),
    ...listFollower(),
    ...policies.filter(({ metadata }) => needsTokens || metadata.name !== NODE_TOKENS),
  ];
}

/**
 * Refuses nothing. It is bound while the policies are switched off too: an API server stops following the list when nothing is
 * bound to it any more, and many releases never follow it again (kubernetes#130887).
 */
export function listFollower(): readonly KubeObject[] {
  const name = `${ADDRESS_LIST.name}-follower`;
  return [
    policyObject(name, {
      failurePolicy: "Ignore",
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      // There is no such resource.
      matchConstraints: matching(["CREATE"], ["nothing"], `none.${identity.apiGroup}`),
      validations: [{ expression: "true" }],
    }),
    bindingObject(name, { paramRef: { ...ADDRESS_LIST, parameterNotFoundAction: "Allow" } }),
  ];
}

type AdmissionPlan = Pick<EffectiveInstallation, "admissionPolicies" | "datastore">;

/** The admission policies of an installation, in groups that an administrator can switch off one by one. Pure. */
import type { AdmissionGroup } from "../../model/installation/admission.ts";
import type { EffectiveInstallation } from "../effective-installation.ts";
import type { KubeObject } from "../kube-object.ts";
import { addressListObject, chosenAddressesPolicies, recordedAddressesPolicies } from "./address-policies.ts";
import { NODE_TOKENS, nodeAccountPolicies } from "./node-policies.ts";

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
  return [addressListObject(), ...policies.filter(({ metadata }) => needsTokens || metadata.name !== NODE_TOKENS)];
}

type AdmissionPlan = Pick<EffectiveInstallation, "admissionPolicies" | "datastore">;

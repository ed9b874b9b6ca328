/** The files of `deploy/admission/`, for an installation by hand. Generated from src/release/admission. */
import { identity } from "../../identity.ts";
import { CHOSEN_ANNOTATIONS } from "../../model/recorded-annotations.ts";
import { formatYaml } from "../../yaml.ts";
import { ADDRESS_LIST } from "./address-policies.ts";
import { listFollower, policiesOf } from "./policies.ts";

const { product, annotationPrefix } = identity;

/** By the names of their files. */
export function admissionFiles(): Readonly<Record<string, () => string>> {
  return {
    [`${ADDRESS_LIST.name}.yaml`]: addressListText,
    [`${product}-address-policies.yaml`]: addressPoliciesText,
    [`${product}-node-policies.yaml`]: nodePoliciesText,
  };
}

/** The list as it is created: it permits nobody. */
function addressListText(): string {
  return `# Which pods may choose addresses that IPAM does not check; see docs/admission.md.
# One line for each: "namespace" permits all pods of a namespace, "namespace/service-account" those of one account.
# Generated from src/release/admission.
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${ADDRESS_LIST.name}
  namespace: ${ADDRESS_LIST.namespace}
data:
${CHOSEN_ANNOTATIONS.map((name) => `  ${name}: |\n    # ${annotationPrefix}${name}\n`).join("")}`;
}

function nodePoliciesText(): string {
  return `# A token of one node does not change what belongs to other nodes; see docs/admission.md.
# Generated from src/release/admission.
${policiesOf("nodeAccounts").map(formatYaml).join("---\n")}`;
}

function addressPoliciesText(): string {
  const policies = [...listFollower(), ...policiesOf("chosenAddresses"), ...policiesOf("recordedAddresses")];
  return `# Users may not choose arbitrary addresses; see docs/admission.md. Create ${ADDRESS_LIST.name}.yaml first.
# Generated from src/release/admission.
${policies.map(formatYaml).join("---\n")}`;
}

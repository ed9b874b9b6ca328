/** NetworkPolicies of Kubernetes for tests, as the product converts them. */
import { convertPolicy } from "../../src/model/orchestrator-policy.ts";
import type { WrittenPolicy } from "./policy-site.ts";

interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly Requirement[];
}

interface Peer {
  readonly podSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

interface Port {
  readonly protocol: string;
  readonly port?: number | string;
  readonly endPort?: number;
}

interface IngressRule {
  readonly from?: readonly Peer[];
  readonly ports?: readonly Port[];
}

interface EgressRule {
  readonly to?: readonly Peer[];
  readonly ports?: readonly Port[];
}

interface Spec {
  readonly podSelector: LabelSelector;
  readonly policyTypes?: readonly ("Ingress" | "Egress")[];
  readonly ingress?: readonly IngressRule[];
  readonly egress?: readonly EgressRule[];
}

export const ALL: LabelSelector = {};
export const labels = (name: string, value: string): LabelSelector => ({ matchLabels: { [name]: value } });
export const expressions = (...matchExpressions: readonly Requirement[]): LabelSelector => ({ matchExpressions });

export const podPeer = (podSelector: LabelSelector): Peer => ({ podSelector });
export const namespacePeer = (namespaceSelector: LabelSelector, podSelector?: LabelSelector): Peer => ({
  namespaceSelector,
  ...(podSelector === undefined ? {} : { podSelector }),
});
export const ipBlock = (cidr: string, ...except: readonly string[]): Peer => ({
  ipBlock: { cidr, ...(except.length === 0 ? {} : { except }) },
});

/** A number, a name, or a range; without any, every port. */
export function ports(
  protocol: "TCP" | "UDP" | "SCTP",
  ...given: readonly (number | string | readonly [first: number, last: number])[]
): readonly Port[] {
  if (given.length === 0) return [{ protocol }];
  return given.map((port) =>
    typeof port === "object" ? { protocol, port: port[0], endPort: port[1] } : { protocol, port },
  );
}

export function ingress(
  namespace: string,
  podSelector: LabelSelector,
  ...rules: readonly IngressRule[]
): WrittenPolicy {
  const spec: Spec = { podSelector, policyTypes: ["Ingress"], ingress: rules };
  return kubernetesPolicy(namespace, `in-${nameOf(podSelector)}`, spec);
}

export function egress(namespace: string, podSelector: LabelSelector, ...rules: readonly EgressRule[]): WrittenPolicy {
  const spec: Spec = { podSelector, policyTypes: ["Egress"], egress: rules };
  return kubernetesPolicy(namespace, `out-${nameOf(podSelector)}`, spec);
}

export function kubernetesPolicy(namespace: string, name: string, spec: Spec): WrittenPolicy {
  const converted = convertPolicy({ metadata: { name, namespace }, spec });
  if (converted.metadata.annotations !== undefined) throw new Error(JSON.stringify(converted.metadata.annotations));
  return { namespace, name: converted.metadata.name, spec: converted.spec };
}

/** For a second policy with the same selector. */
export const named = (name: string, policy: WrittenPolicy): WrittenPolicy => ({
  ...policy,
  name: `knp.default.${name}`,
});

function nameOf(selector: LabelSelector): string {
  return JSON.stringify(selector)
    .replace(/match(Labels|Expressions)/g, "")
    .replace(/[^a-z]+/gi, "-")
    .replace(/^-|-$/g, "")
    .toLowerCase();
}

/**
 * The identity that a mesh gives to a workload: `spiffe://TRUST_DOMAIN/ns/NAMESPACE/sa/ACCOUNT`. Pure.
 *
 * Envoy describes a client by the first URI of its certificate, else by its first DNS name, else by its subject. Nothing
 * but the exact form of an identity counts: SPIFFE does not allow percent-encoding, empty segments, a port or a query.
 */
export interface ServiceAccountIdentity {
  readonly namespace: string;
  readonly account: string;
}

/** Identities of every trust domain are accepted. */
export const ANY_TRUST_DOMAIN = "*";

const PRINCIPAL = /^spiffe:\/\/([a-z0-9._-]+)\/ns\/([a-z0-9-]+)\/sa\/([a-z0-9.-]+)$/;

/** `undefined`: it is not an identity of the trust domain. */
export function parsePrincipal(principal: string, trustDomain: string): ServiceAccountIdentity | undefined {
  const [, domain, namespace, account] = PRINCIPAL.exec(principal) ?? [];
  if (namespace === undefined || account === undefined) return undefined;
  if (trustDomain !== ANY_TRUST_DOMAIN && trustDomain !== domain) return undefined;
  return { namespace, account };
}

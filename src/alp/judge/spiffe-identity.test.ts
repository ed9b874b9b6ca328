import { describe, expect, test } from "bun:test";
import { ANY_TRUST_DOMAIN, parsePrincipal } from "./spiffe-identity.ts";

const READER = { namespace: "red", account: "reader" };

const ROWS: readonly (readonly [principal: string, trustDomain: string, expected: typeof READER | undefined])[] = [
  ["spiffe://cluster.local/ns/red/sa/reader", "cluster.local", READER],
  ["spiffe://cluster.local/ns/red/sa/my.reader-1", "cluster.local", { namespace: "red", account: "my.reader-1" }],
  ["spiffe://other.example/ns/red/sa/reader", ANY_TRUST_DOMAIN, READER],
  ["spiffe://other.example/ns/red/sa/reader", "other.example", READER],
  // Other trust domains, also those whose name only resembles the own one.
  ["spiffe://other.example/ns/red/sa/reader", "cluster.local", undefined],
  ["spiffe://cluster.local.other.example/ns/red/sa/reader", "cluster.local", undefined],
  ["spiffe://xcluster.local/ns/red/sa/reader", "cluster.local", undefined],
  ["spiffe://clusterxlocal/ns/red/sa/reader", "cluster.local", undefined],
  ["spiffe:///ns/red/sa/reader", "", undefined],
  ["spiffe:///ns/red/sa/reader", ANY_TRUST_DOMAIN, undefined],
  ["spiffe://user@cluster.local/ns/red/sa/reader", ANY_TRUST_DOMAIN, undefined],
  ["spiffe://cluster.local:443/ns/red/sa/reader", ANY_TRUST_DOMAIN, undefined],
  // SPIFFE writes scheme and trust domain in lower case, and never percent-encodes.
  ["SPIFFE://cluster.local/ns/red/sa/reader", "cluster.local", undefined],
  ["spiffe://CLUSTER.local/ns/red/sa/reader", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/r%65d/sa/reader", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red%2Fsa%2Freader/sa/other", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red/sa/reader%00", "cluster.local", undefined],
  // Wrong shapes.
  ["spiffe://cluster.local/sa/reader/ns/red", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red/sa/", "cluster.local", undefined],
  ["spiffe://cluster.local/ns//sa/reader", "cluster.local", undefined],
  ["spiffe://cluster.local//ns/red/sa/reader", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red/sa/reader/", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red/sa/reader/more", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/blue/../red/sa/reader", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red.blue/sa/reader", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red/sa/reader?a=b", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red/sa/reader#a", "cluster.local", undefined],
  ["spiffe://cluster.local/ns/red/sa/reader\n", "cluster.local", undefined],
  [" spiffe://cluster.local/ns/red/sa/reader", "cluster.local", undefined],
  ["https://cluster.local/ns/red/sa/reader", "cluster.local", undefined],
  // Envoy reports the first URI of a certificate alone. Several in one text do not come from it.
  ["spiffe://cluster.local/ns/red/sa/reader,spiffe://cluster.local/ns/blue/sa/writer", "cluster.local", undefined],
  // Without a URI, Envoy reports a DNS name or the subject.
  ["reader.red.svc.cluster.local", "cluster.local", undefined],
  ["CN=spiffe://cluster.local/ns/red/sa/reader", "cluster.local", undefined],
  ["", "cluster.local", undefined],
];

describe("parsePrincipal()", () => {
  for (const [principal, trustDomain, expected] of ROWS) {
    test(`${JSON.stringify(principal)} in trust domain "${trustDomain}"`, () => {
      expect(parsePrincipal(principal, trustDomain)).toEqual(expected as typeof READER);
    });
  }
});

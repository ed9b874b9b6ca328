/** Requests to the pod "web", and whether its policy allows them. */
import { API_VERSION } from "../../src/identity.ts";
import type { HttpOutcome } from "../support/http-connection.ts";
import { type ClientName, SHOP } from "./alp-cluster.ts";
import { PORTS } from "./served-pod.ts";

export interface Row {
  readonly client: ClientName;
  /** `NAMESPACE/ACCOUNT`, or a whole URI, of the client's certificate; absent: without TLS. */
  readonly identity?: string;
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly outcome: "through" | "denied";
}

const THROUGH_ENVOY = { ports: [PORTS.plain, PORTS.mutualTls, PORTS.tcp] };

/** `stranger`: the address of the client of that name. */
export function policyOfWeb(stranger: string): object {
  const allow = (http: object, source?: object) => ({
    action: "Allow",
    http,
    destination: THROUGH_ENVOY,
    ...(source === undefined ? {} : { source }),
  });
  return networkPolicy("web", [
    allow({ methods: ["GET", "HEAD"], paths: [{ prefix: "/public" }] }),
    allow({ methods: ["POST"], paths: [{ exact: "/orders" }] }, { serviceAccounts: { names: ["frontend"] } }),
    allow({ paths: [{ prefix: "/by-label" }] }, { selector: "tier == 'back'" }),
    allow({ paths: [{ prefix: "/by-address" }] }, { nets: [`${stranger}/32`] }),
    allow(
      { paths: [{ prefix: "/by-namespace" }] },
      { namespaceSelector: "all()", serviceAccounts: { names: ["stranger"] } },
    ),
  ]);
}

/** Applies to both pods with Envoy. */
export function networkPolicy(name: string, ingress: readonly object[], order = 100): object {
  return {
    apiVersion: API_VERSION,
    kind: "NetworkPolicy",
    metadata: { name, namespace: SHOP },
    spec: { order, selector: "app == 'web'", types: ["Ingress"], ingress },
  };
}

const through = { outcome: "through" } as const;
const denied = { outcome: "denied" } as const;

export const ROWS: readonly Row[] = [
  // By method.
  { client: "stranger", method: "GET", path: "/public", ...through },
  { client: "stranger", method: "HEAD", path: "/public", ...through },
  { client: "stranger", method: "POST", path: "/public", ...denied },
  { client: "stranger", method: "DELETE", path: "/public", ...denied },
  // By path, in its normal form.
  { client: "batch", method: "GET", path: "/public/a?b=/../c", ...through },
  { client: "batch", method: "GET", path: "/publicity", ...through },
  { client: "batch", method: "GET", path: "/Public", ...denied },
  { client: "batch", method: "GET", path: "/", ...denied },
  { client: "batch", method: "GET", path: "/%70ublic/x", ...through },
  { client: "batch", method: "GET", path: "/public//x", ...through },
  { client: "batch", method: "GET", path: "/public/x/../y", ...through },
  { client: "batch", method: "GET", path: "//public//x", ...denied },
  { client: "batch", method: "GET", path: "/private/../public", ...denied },
  { client: "batch", method: "GET", path: "/public/../private", ...denied },
  { client: "batch", method: "GET", path: "/public/%2e%2e/private", ...denied },
  { client: "batch", method: "GET", path: "/public/..%2fprivate", ...denied },
  { client: "batch", method: "GET", path: "/public/..;/private", ...denied },
  { client: "batch", method: "GET", path: "/public\\..\\private", ...denied },
  { client: "batch", method: "GET", path: "/public/%252e%252e/private", ...denied },
  { client: "batch", method: "GET", path: "/public/%zz", ...denied },
  // By service account: of the address, and of the certificate if there is one.
  { client: "frontend", method: "POST", path: "/orders", ...through },
  { client: "frontend", method: "POST", path: "/orders/1", ...denied },
  { client: "batch", method: "POST", path: "/orders", ...denied },
  { client: "frontend", identity: "shop/frontend", method: "POST", path: "/orders", ...through },
  { client: "frontend", identity: "shop/batch", method: "POST", path: "/orders", ...denied },
  { client: "frontend", identity: "other/frontend", method: "POST", path: "/orders", ...denied },
  {
    client: "frontend",
    identity: "spiffe://elsewhere.example/ns/shop/sa/frontend",
    method: "POST",
    path: "/orders",
    ...denied,
  },
  { client: "batch", identity: "shop/frontend", method: "POST", path: "/orders", ...denied },
  { client: "stranger", identity: "other/stranger", method: "GET", path: "/by-namespace", ...through },
  { client: "stranger", identity: "shop/stranger", method: "GET", path: "/public", ...through },
  // By label: the certificate must be of the namespace of the rule.
  { client: "batch", method: "GET", path: "/by-label", ...through },
  { client: "batch", identity: "shop/batch", method: "GET", path: "/by-label", ...through },
  { client: "batch", identity: "other/stranger", method: "GET", path: "/by-label", ...denied },
  { client: "frontend", method: "GET", path: "/by-label", ...denied },
  { client: "stranger", method: "GET", path: "/by-label", ...denied },
  // By address; what a client writes about itself does not count.
  { client: "stranger", method: "GET", path: "/by-address", ...through },
  { client: "stranger", identity: "other/stranger", method: "GET", path: "/by-address", ...through },
  { client: "batch", method: "GET", path: "/by-address", ...denied },
];

export function titleOf({ client, identity, method, path }: Omit<Row, "outcome">): string {
  return `${method} ${path} by ${client}${identity === undefined ? "" : ` with the certificate of ${identity}`}`;
}

/** It redirects to the path that it has cleaned, and refuses one that it cannot decode. */
const FROM_APPLICATION: readonly HttpOutcome[] = [200, 301, 307, 400];

/** What the row expects, as the client sees it. */
export function seenOutcome(outcome: HttpOutcome): Row["outcome"] | HttpOutcome {
  if (outcome === 403) return "denied";
  return FROM_APPLICATION.includes(outcome) ? "through" : outcome;
}

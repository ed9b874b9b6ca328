/** Rules with `http` that are refused: by the codec of the model, and by the API server. */
import type { BadResource } from "./bad-resource.ts";

const POLICY = "NetworkPolicy";
const GLOBAL = "GlobalNetworkPolicy";
const HTTP = { methods: ["GET"], paths: [{ exact: "/" }] };

const rule = (what: string, match: object, message: string): BadResource => ({
  what: `http ${what}`,
  kind: POLICY,
  spec: { ingress: [{ action: "Allow", http: HTTP, ...match }] },
  path: "spec.ingress[0].http",
  message,
});

const method = (text: string, message: string): BadResource => ({
  what: `the method ${JSON.stringify(text)}`,
  kind: POLICY,
  spec: { ingress: [{ action: "Allow", http: { methods: ["GET", text] } }] },
  path: "spec.ingress[0].http.methods[1]",
  message,
});

const path = (kind: "exact" | "prefix", text: string, [message, fix]: readonly [string, string]): BadResource => ({
  what: `the ${kind} path ${JSON.stringify(text)}`,
  kind: GLOBAL,
  spec: { ingress: [{ action: "Allow", http: { paths: [{ [kind]: text }] } }] },
  path: `spec.ingress[0].http.paths[0].${kind}`,
  message: `${message}; ${fix}`,
  onServer: `spec.ingress[0].http.paths[0].${kind}: Invalid value: ${JSON.stringify(text)}: ${message.split(":")[0]};`,
});

const NORMAL = "is not in normal form";
const SEEN = "use the path that the server sees";
const NOT_A_METHOD = 'is not an HTTP method; use for example "GET", or "*" for every method';
const ONE = "must have exactly one of exact and prefix; use a member of the list for each";

export const BAD_HTTP_RULES: readonly BadResource[] = [
  ...["Deny", "Pass", "Log"].map((action) =>
    rule(
      `in a rule with action ${action}`,
      { action },
      'needs "action" to be Allow; a request that no rule allows is denied',
    ),
  ),
  rule("of UDP", { protocol: "UDP" }, 'needs "protocol" to be TCP; set it'),
  rule("of protocol 132", { protocol: 132 }, 'needs "protocol" to be TCP; set it'),
  rule("of ICMP types", { protocol: "ICMP", icmp: { type: 8 } }, 'needs "protocol" to be TCP; set it'),
  rule(
    "of every protocol except TCP",
    { notProtocol: "tcp" },
    'cannot be combined with "notProtocol" TCP, which HTTP uses; remove one of them',
  ),
  {
    what: "http in an egress rule",
    kind: GLOBAL,
    spec: { egress: [{ action: "Allow", http: {} }] },
    path: "spec.egress[0].http",
    message: "is not allowed in egress rules, since the sidecar of the destination decides; use an ingress rule",
  },
  ...["doNotTrack", "preDNAT"].map((field) => ({
    what: `http in a policy with ${field}`,
    kind: GLOBAL,
    spec: { [field]: true, applyOnForward: true, ingress: [{ action: "Allow" }, { action: "Allow", http: {} }] },
    path: "spec.ingress[1].http",
    message: "cannot be combined with doNotTrack or preDNAT; use another policy for it",
    onServer: "has a rule with http, which cannot be combined with doNotTrack or preDNAT; use another policy for it",
  })),
  method("", NOT_A_METHOD),
  method("GET POST", NOT_A_METHOD),
  method("get", 'is not a method: methods are case sensitive; use "GET"'),
  method("Get", 'is not a method: methods are case sensitive; use "GET"'),
  path("exact", "", ['does not begin with "/"', 'use "/"']),
  path("prefix", "api", ['does not begin with "/"', 'use "/api"']),
  path("exact", "/a?b", ["has a query or a fragment, which rules do not match", 'use "/a"']),
  path("prefix", "/a#b", ["has a query or a fragment, which rules do not match", 'use "/a"']),
  path("exact", "/a//b", [NORMAL, 'use "/a/b"']),
  path("exact", "/a/./b", [NORMAL, 'use "/a/b"']),
  path("prefix", "/a/b/..", [NORMAL, 'use "/a/"']),
  path("prefix", "/%61", [NORMAL, 'use "/a"']),
  path("exact", "/a%2520b", [`${NORMAL}: it is percent-encoded twice`, SEEN]),
  path("exact", "/..", [`${NORMAL}: it leaves the root`, SEEN]),
  path("prefix", "/a/..;b", [`${NORMAL}: it has an empty segment or dot segment with parameters`, SEEN]),
  path("prefix", "/a/;b", [`${NORMAL}: it has an empty segment or dot segment with parameters`, SEEN]),
  path("exact", "/a/..b", [`${NORMAL}: it has a segment that resembles a dot segment`, SEEN]),
  path("exact", "/a../b", [`${NORMAL}: it has a segment that resembles a dot segment`, SEEN]),
  path("exact", "/a\\b", [`${NORMAL}: it contains a backslash`, SEEN]),
  path("exact", "/a\nb", [`${NORMAL}: it contains a control character`, SEEN]),
  ...[{}, { exact: "/", prefix: "/" }].map((both) => ({
    what: `the path ${JSON.stringify(both)}`,
    kind: POLICY,
    spec: { ingress: [{ action: "Allow", http: { paths: [{ exact: "/" }, both] } }] },
    path: "spec.ingress[0].http.paths[1]",
    message: ONE,
  })),
  {
    what: "the headers of HTTP",
    kind: POLICY,
    spec: { ingress: [{ action: "Allow", http: { headers: [] } }] },
    path: "spec.ingress[0].http.headers",
    message: "is not a known field",
    onServer: 'unknown field "spec.ingress[0].http.headers"',
  },
];

export const GOOD_HTTP_RULES = [
  { action: "Allow", http: {} },
  { action: "Allow", http: { methods: [], paths: [] }, destination: { ports: [80] } },
  {
    action: "Allow",
    ipVersion: 6,
    protocol: "TCP",
    notProtocol: "UDP",
    http: {
      methods: ["*", "GET", "M-SEARCH"],
      paths: [{ exact: "/" }, { prefix: "/.well-known/a b/100%/é;x=1" }, { exact: "/a/" }, { prefix: "/v1...v2" }],
    },
  },
];

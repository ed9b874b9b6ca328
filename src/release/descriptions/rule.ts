/** The rules of policies and profiles. */
import { below, type Descriptions } from "./fields.ts";

const ENTITY: Descriptions = {
  nets: "Addresses or CIDRs to match",
  notNets: "Addresses or CIDRs not to match",
  selector: "Selector of the endpoints to match",
  notSelector: "Selector of the endpoints not to match",
  namespaceSelector: "Selector of the namespaces whose endpoints match",
  ports: "Ports to match: numbers, ranges such as 1000:2000, or names",
  notPorts: "Ports not to match",
  serviceAccounts: "Service accounts whose endpoints match",
  "serviceAccounts.names": "Names of the service accounts",
  "serviceAccounts.selector": "Selector of the service accounts",
  services: "Service whose endpoints match",
  "services.name": "Name of the service",
  "services.namespace": "Namespace of the service",
};

export const RULE: Descriptions = {
  action: "What happens to matching packets",
  ipVersion: "IP version to match",
  protocol: "Protocol to match, by name or number",
  notProtocol: "Protocol not to match",
  icmp: "ICMP messages to match",
  "icmp.type": "Type of the ICMP message",
  "icmp.code": "Code of the ICMP message",
  notICMP: "ICMP messages not to match",
  "notICMP.type": "Type of the ICMP message",
  "notICMP.code": "Code of the ICMP message",
  ...below("source", "Where packets come from", ENTITY),
  ...below("destination", "Where packets go to", ENTITY),
  http: "HTTP requests to match, in ingress rules with action Allow; needs a sidecar beside the workload",
  "http.methods": "Methods to match, case sensitive; none or * matches every method",
  "http.paths": "Paths to match; none matches every path",
  "http.paths.exact": "Path that must be equal",
  "http.paths.prefix": "Text that the path must begin with; /api matches /apix too",
  metadata: "Data about the rule",
  "metadata.annotations": "Annotations of the rule",
};

const REFUSED = "Refused here: only ingress rules of NetworkPolicies and GlobalNetworkPolicies can have it";

/** Egress rules, and the rules of profiles. */
export const RULE_WITHOUT_HTTP: Descriptions = {
  ...RULE,
  ...Object.fromEntries(Object.keys(RULE).flatMap((path) => (/^http(\.|$)/.test(path) ? [[path, REFUSED]] : []))),
};

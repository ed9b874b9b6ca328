import { DEFAULT_TRUST_DOMAIN } from "../../policy/judge/trust-domain.ts";
import type { Option } from "../main/option.ts";

export const PACKET_OPTIONS: readonly Option[] = [
  {
    name: "protocol",
    value: "PROTOCOL",
    summary: "tcp (default), udp, sctp, icmp or the number of a protocol; icmp means ICMPv6 between IPv6 addresses",
  },
  { name: "port", value: "PORT", summary: "Destination port; needed for TCP, UDP and SCTP" },
  { name: "source-port", value: "PORT", summary: "Source port; default: one that no rule names" },
  { name: "icmp-type", value: "TYPE", summary: "Type of the ICMP message; default: echo request" },
  { name: "icmp-code", value: "CODE", summary: "Code of the ICMP message; default: 0" },
  {
    name: "method",
    value: "METHOD",
    summary: "Method of an HTTP request over the connection; default with --path: GET",
  },
  { name: "path", value: "PATH", summary: "Path of the request, as the client sends it; default: /" },
  {
    name: "principal",
    value: "URI",
    summary: "Identity in the client's certificate: spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT; default: no certificate",
  },
  { name: "trust-domain", value: "DOMAIN", summary: `Of the sidecar, "*" for any; default: ${DEFAULT_TRUST_DOMAIN}` },
  { name: "ip-version", value: "4|6", oneOf: ["4", "6"], summary: "Default: every version that both ends have" },
];

export const FLOW_OPTIONS: readonly Option[] = [
  {
    name: "from",
    value: "WORKLOAD|HOST|ADDRESS",
    summary: "Source: NAMESPACE/POD, a container, a node, hostendpoint/NAME or an address; default: any",
  },
  {
    name: "to",
    value: "WORKLOAD|HOST|ADDRESS",
    summary:
      "Destination, as the sender writes it: NAMESPACE/POD, a container, a node, hostendpoint/NAME or an address; default: any",
  },
  {
    name: "protocol",
    value: "PROTOCOL",
    summary: "tcp, udp, sctp, icmp or a number; default: tcp with a port, otherwise any; of all dropped packets any",
  },
  { name: "port", value: "PORT", summary: "Destination port; default: any" },
  { name: "source-port", value: "PORT", summary: "Source port; default: any" },
  { name: "ip-version", value: "4|6", oneOf: ["4", "6"], summary: "Default: every version that the ends have" },
];

export const DEFAULT_SECONDS = 30;

export const DEFAULT_COUNT = 10;

/** How far back a draft looks. */
export const DRAFT_TIME = "1d";

/** How long a rule must have had no packet to be unused. */
export const UNUSED_TIME = "7d";

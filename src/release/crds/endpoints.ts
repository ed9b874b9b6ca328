/** HostEndpoint, WorkloadEndpoint and ContainerLabels. The checks of the model are in `src/model/host-endpoint.ts`, with the messages. */
import { endpointProtocol } from "../../model/endpoint-port.ts";
import { ALL_INTERFACES, HOST_ENDPOINT_MESSAGES, INTERFACE_NAME } from "../../model/host-endpoint.ts";
import { spellings } from "./cel.ts";
import type { CelRule } from "./crd-schema.ts";
import type { CheckedFields, ReleasedKinds } from "./kind.ts";

const HOST_ENDPOINT_RULES: readonly CelRule[] = [
  {
    rule: "has(self.node) && self.node != ''",
    fieldPath: ".node",
    message: HOST_ENDPOINT_MESSAGES.node,
  },
  {
    rule: "has(self.interfaceName) || (has(self.expectedIPs) && self.expectedIPs.size() > 0)",
    fieldPath: ".interfaceName",
    message: HOST_ENDPOINT_MESSAGES.noInterface,
  },
  {
    rule: `!has(self.interfaceName) || self.interfaceName == '${ALL_INTERFACES}' || self.interfaceName.matches('${INTERFACE_NAME.source}')`,
    fieldPath: ".interfaceName",
    message: HOST_ENDPOINT_MESSAGES.interfaceName,
  },
];

export const ENDPOINT_KINDS: ReleasedKinds = {
  HostEndpoint: {
    columns: [
      { name: "Node", path: ".spec.node" },
      { name: "Interface", path: ".spec.interfaceName" },
      { name: "Addresses", path: ".spec.expectedIPs" },
      { name: "Profiles", path: ".spec.profiles", isWide: true },
    ],
    rules: { spec: HOST_ENDPOINT_RULES },
    descriptions: {
      "": "An interface of a host, or all of them, that policies apply to",
      spec: "The interface",
      "spec.node": "Name of the host's node",
      "spec.interfaceName": 'Name of the interface, or "*" for all interfaces that are not those of workloads',
      "spec.expectedIPs":
        "Addresses of the interface; they find it if it has no name here, and rules select them by labels",
      "spec.profiles": "Profiles that the endpoint inherits from",
      "spec.ports": "Named ports of the host",
      "spec.ports.name": "Name of the port",
      "spec.ports.protocol": "Protocol of the port",
      "spec.ports.port": "Port of the host",
    },
  },
  WorkloadEndpoint: {
    orchestratorObject: "Pod",
    descriptions: {
      "": "One interface of a workload: its addresses, and its interface on the host",
      spec: "The endpoint",
      "spec.orchestrator": "Orchestrator of the workload",
      "spec.workload": "Name of the workload",
      "spec.node": "Node that the workload runs on",
      "spec.containerID": "ID of the workload's container",
      "spec.pod": "Name of the workload's pod",
      "spec.endpoint": "Name of the interface in the workload",
      "spec.serviceAccountName": "Service account of the workload",
      "spec.ipNetworks": "Addresses of the endpoint, each with its full prefix length",
      "spec.ipNATs": "Addresses under which the endpoint can be reached from outside",
      "spec.ipNATs.internalIP": "Address of the endpoint",
      "spec.ipNATs.externalIP": "Address that is translated to it",
      "spec.ipv4Gateway": "IPv4 gateway of the workload",
      "spec.ipv6Gateway": "IPv6 gateway of the workload",
      "spec.profiles": "Profiles that the endpoint inherits from",
      "spec.interfaceName": "Name of the endpoint's interface on the host",
      "spec.mac": "MAC address of the workload's interface",
      "spec.ports": "Named ports and host ports of the workload",
      "spec.ports.name": "Name of the port",
      "spec.ports.protocol": "Protocol of the port",
      "spec.ports.port": "Port of the workload",
      "spec.ports.hostPort": "Port of the host that is forwarded to it",
      "spec.ports.hostIP": "Address of the host to which the host port is limited",
      "spec.allowSpoofedSourcePrefixes":
        "CIDRs that the workload may send from beside its own addresses; written by ADD from the pod's annotation allowedSourcePrefixes",
    },
  },
  ContainerLabels: {
    orchestratorObject: "Pod",
    descriptions: {
      "": "Labels of a container, by its name, or of every container of a network; they outlast its restart",
      spec: "The containers, and their labels",
      "spec.node": "Node of the container; needed with container, not allowed with network",
      "spec.container": "Name of the container, as its runtime says it",
      "spec.network": "Name of a network: every container of it on every node",
      "spec.labels": "Labels that the endpoints of the containers get; they win over those in the endpoints",
    },
  },
};

export const ENDPOINT_FIELDS: CheckedFields = [
  [endpointProtocol, { "x-kubernetes-int-or-string": true, enum: [6, 17, 132, ...spellings(["TCP", "UDP", "SCTP"])] }],
];

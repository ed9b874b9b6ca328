/** Rules about the fields of an Installation that need nothing of the cluster. Reports all problems together. */
import { checkRefused } from "../bgp-fields.ts";
import type { Problem } from "../problem.ts";
import { cniProblems } from "./cni.ts";
import { ALERTS_MESSAGES, type DeclaredConsole, isHost, NOT_A_HOST } from "./console.ts";
import { DATASTORE_MESSAGES, type DeclaredDatastore } from "./datastore.ts";
import { NETWORK_FIELD } from "./names.ts";
import {
  type DeclaredDetection,
  type DeclaredNetwork,
  NOT_AN_MTU,
  REFUSED_NETWORK_FIELDS,
  SMALLEST_MTU,
} from "./network.ts";
import { MOST_POOLS, TOO_MANY_POOLS } from "./pool.ts";
import { type InstallationSpec, REFUSED_SPEC_FIELDS } from "./spec.ts";

/** `spec.vendorNetwork`. */
export const NETWORK_PATH = `spec.${NETWORK_FIELD}`;

export function checkSpec(spec: InstallationSpec): readonly Problem[] {
  return [
    ...checkRefused(spec, REFUSED_SPEC_FIELDS),
    ...cniProblems(spec.cni ?? {}, spec.network?.cni ?? {}, `${NETWORK_PATH}.cni`),
    ...checkDatastore(spec.datastore ?? {}),
    ...checkControlPlane(spec),
    ...checkNetwork(spec.network ?? {}),
    ...checkConsole(spec.console ?? {}),
  ];
}

function checkDatastore({ type = "Kubernetes", etcd }: DeclaredDatastore): readonly Problem[] {
  if (type === "Kubernetes") {
    return etcd === undefined
      ? []
      : [{ path: "spec.datastore.etcd", value: undefined, message: DATASTORE_MESSAGES.etcdUnused }];
  }
  const { endpoints = [], discoverySrv } = etcd ?? {};
  if (endpoints.length === 0) {
    if (discoverySrv !== undefined) return [];
    return [{ path: "spec.datastore.type", value: type, message: DATASTORE_MESSAGES.noEtcd }];
  }
  if (discoverySrv === undefined) return [];
  return [{ path: "spec.datastore.etcd.discoverySrv", value: discoverySrv, message: DATASTORE_MESSAGES.twoSources }];
}

/** The pattern of the schema lets pass what looks like an address and is none. */
function checkConsole({ hosts = [], alerts }: DeclaredConsole): readonly Problem[] {
  return [
    ...hosts.flatMap((value, index) =>
      isHost(value) ? [] : [{ path: `spec.console.hosts[${index}]`, value, message: NOT_A_HOST }],
    ),
    ...(["namespace", "service"] as const).flatMap((field) =>
      alerts === undefined || alerts[field] !== undefined
        ? []
        : [{ path: `spec.console.alerts.${field}`, value: undefined, message: ALERTS_MESSAGES[field] }],
    ),
  ];
}

const OS_LABEL = "kubernetes.io/os";

function checkControlPlane({ controlPlaneNodeSelector = {} }: InstallationSpec): readonly Problem[] {
  const system = controlPlaneNodeSelector[OS_LABEL];
  if (system === undefined || system === "linux") return [];
  const message = 'has no node for the controllers: they run on Linux; use "linux" or remove it';
  return [{ path: `spec.controlPlaneNodeSelector.${OS_LABEL}`, value: system, message }];
}

function checkNetwork(network: DeclaredNetwork): readonly Problem[] {
  const { mtu = 0, ipPools = [] } = network;
  return [
    ...below(NETWORK_PATH, checkRefused(network, REFUSED_NETWORK_FIELDS)),
    ...(mtu !== 0 && mtu < SMALLEST_MTU ? [{ path: `${NETWORK_PATH}.mtu`, value: mtu, message: NOT_AN_MTU }] : []),
    ...(ipPools.length > MOST_POOLS
      ? [{ path: `${NETWORK_PATH}.ipPools`, value: ipPools.length, message: TOO_MANY_POOLS }]
      : []),
    ...(["nodeAddressAutodetectionV4", "nodeAddressAutodetectionV6"] as const).flatMap((field) =>
      checkDetection(network[field], `${NETWORK_PATH}.${field}`),
    ),
  ];
}

/** `checkRefused` names fields below `spec`. */
function below(path: string, problems: readonly Problem[]): readonly Problem[] {
  return problems.map((problem) => ({ ...problem, path: problem.path.replace(/^spec/, path) }));
}

/** The CRD has rules with the same messages. */
export const DETECTION_MESSAGES = {
  none: "has no method; use one of firstFound, kubernetes, interface, skipInterface, canReach, cidrs",
  several: "has more than one method; use only one of them",
  notFirst: "means no method; use true, or another method",
} as const;

function checkDetection(detection: DeclaredDetection | undefined, path: string): readonly Problem[] {
  if (detection === undefined) return [];
  const methods = Object.keys(detection);
  if (methods.length === 0) return [{ path, value: undefined, message: DETECTION_MESSAGES.none }];
  if (methods.length > 1) return [{ path, value: methods.join(", "), message: DETECTION_MESSAGES.several }];
  if (detection.firstFound !== false) return [];
  return [{ path: `${path}.firstFound`, value: false, message: DETECTION_MESSAGES.notFirst }];
}

/**
 * The records of an attachment: its workload endpoint, and the profile that the
 * endpoints of a network share. Pure: compares stored and wanted records and
 * returns the changes to commit.
 */
import type { Change, Entry } from "../datastore/datastore.ts";
import { API_VERSION } from "../identity.ts";
import { type Address, addressBits, formatAddress } from "../ip/address.ts";
import { formatMac } from "../ip/mac.ts";
import { endpointLabels, NETWORK_ANNOTATION } from "../model/endpoint-labels.ts";
import { resourceKey } from "../model/keys.ts";
import type { Metadata } from "../model/metadata.ts";
import type { Profile } from "../model/profile.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { readStoredEndpoint } from "./stored-endpoint.ts";
import type { Workload } from "./workload.ts";

/** UID and creation time of a new record. */
export interface RecordStamp {
  readonly uid: () => string;
  readonly now: () => Date;
}

export function profileKey(network: string): string {
  return resourceKey("profiles", { name: network });
}

/** An equal record is not written; the record of an earlier sandbox of the pod is updated. */
export function endpointChanges(wanted: WorkloadEndpoint, key: string, held: Entry | undefined): readonly Change[] {
  if (held === undefined) return [{ kind: "create", key, value: JSON.stringify(wanted) }];
  const before = readStoredEndpoint(held);
  const { uid, creationTimestamp } = before;
  const metadata: Metadata = {
    ...wanted.metadata,
    ...(uid === undefined ? {} : { uid }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
  const after = { ...wanted, metadata };
  if (Bun.deepEquals(after, before.whole)) return [];
  return [{ kind: "update", key, value: JSON.stringify(after), revision: held.revision }];
}

/** Created by the first attachment of a network and not changed later: operators may edit it. */
export function profileChanges(workload: Workload, held: Entry | undefined, stamp: RecordStamp): readonly Change[] {
  if (held !== undefined) return [];
  const { network, orchestrator } = workload;
  const from = orchestrator === "k8s" ? {} : { source: { selector: `has(${network})` } };
  const profile: Profile = {
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: { name: network, ...stamped(stamp) },
    spec: {
      egress: [{ action: "Allow" }],
      ingress: [{ action: "Allow", ...from }],
      labelsToApply: { [network]: "" },
    },
  };
  return [{ kind: "create", key: profileKey(network), value: JSON.stringify(profile) }];
}

export function endpointOf(workload: Workload, addresses: readonly Address[], stamp: RecordStamp): WorkloadEndpoint {
  const { namespace, orchestrator, network } = workload;
  return {
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: {
      name: workload.endpointName,
      namespace,
      ...stamped(stamp),
      labels: endpointLabels({}, { namespace, orchestrator }),
      annotations: { [NETWORK_ANNOTATION]: network },
    },
    spec: {
      orchestrator,
      ...(workload.containerName === undefined ? {} : { workload: workload.containerName }),
      node: workload.node,
      containerID: workload.containerId,
      ...(workload.pod === undefined ? {} : { pod: workload.pod }),
      endpoint: workload.ifname,
      ipNetworks: addresses.map((address) => `${formatAddress(address)}/${addressBits(address.family)}`),
      profiles: [network],
      interfaceName: workload.hostInterface,
      mac: formatMac(workload.mac),
    },
  };
}

function stamped({ uid, now }: RecordStamp): Pick<Metadata, "uid" | "creationTimestamp"> {
  return { uid: uid(), creationTimestamp: now().toISOString() };
}

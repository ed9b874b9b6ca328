/** Labels of containers by name, or of all containers of a network. */
import { counted, listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { identity } from "../../identity.ts";
import { CONTAINER_ORCHESTRATOR, type ContainerLabels, isLabelledBy } from "../../model/container-labels.ts";
import type { ResourceName } from "../../model/keys.ts";
import { CONTAINER_LABELS, ENDPOINT } from "../../model/kinds.ts";
import type { Problem } from "../../model/problem.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { type AdminKind, type DescribedSection, formatLabels } from "./kind.ts";

export const CONTAINER_LABELS_ROW: AdminKind<ContainerLabels> = {
  ...CONTAINER_LABELS,
  columns: [
    { header: "NODE", cell: ({ spec }) => spec.node ?? "" },
    { header: "CONTAINER", cell: ({ spec }) => spec.container ?? "" },
    { header: "NETWORK", cell: ({ spec }) => spec.network ?? "" },
    { header: "LABELS", cell: ({ spec }) => formatLabels(spec.labels) },
  ],
  leastWanted: ["NODE", "NAME"],
  checkWrite: async (store) => refuseForPods(store),
  describe: describeContainerLabels,
};

function refuseForPods({ isOrchestratorApi }: Datastore): readonly Problem[] {
  if (!isOrchestratorApi) return [];
  const message =
    'is not supported with the orchestrator\'s API as the datastore, where all workloads are pods; use "kubectl label pod"';
  return [{ path: "kind", value: CONTAINER_LABELS.kind, message }];
}

/** Each with its `resourceVersion`; unreadable ones are left out. */
export async function readContainerLabels(store: Datastore): Promise<readonly ContainerLabels[]> {
  const entries = await readAllEntries(store, CONTAINER_LABELS.prefix());
  return readEach(entries, ({ key, value, revision }): ContainerLabels => {
    const read = CONTAINER_LABELS.codec.read(value, key);
    return { ...read, metadata: { ...read.metadata, resourceVersion: revision } };
  }).readable;
}

/** Of containers, not of pods. */
export async function readContainerEndpoints(store: Datastore): Promise<readonly WorkloadEndpoint[]> {
  const entries = await readAllEntries(store, ENDPOINT.prefix());
  const { readable } = readEach(entries, ({ key, value }) => ENDPOINT.codec.read(value, key));
  return readable.filter(({ spec }) => spec.orchestrator === CONTAINER_ORCHESTRATOR);
}

/** A command with more names is not typed. */
const MOST_NAMED = 3;

/** For the kind of nodes: a node of the same name may come back, and its containers would have lost their labels. */
export async function noteOfLabelsLeft(store: Datastore, { name }: ResourceName): Promise<string | undefined> {
  const left = (await readContainerLabels(store)).filter(({ spec }) => spec.node === name);
  if (left.length === 0) return undefined;
  const names = left.map(({ metadata }) => metadata.name);
  const stay = "labels of its containers stay for a node of the same name";
  if (names.length <= MOST_NAMED) {
    return `${stay}; to delete them: ${identity.adminTool} delete containerlabels ${names.join(" ")}`;
  }
  return `${stay}: ${counted(names.length, "ContainerLabels", "ContainerLabels")} (${listed(names)}); to see them: ${identity.adminTool} get containerlabels`;
}

async function describeContainerLabels(
  store: Datastore,
  labels: ContainerLabels,
): Promise<readonly DescribedSection[]> {
  const endpoints = (await readContainerEndpoints(store)).filter((endpoint) => isLabelledBy(endpoint, labels));
  const rows = endpoints.map(({ metadata, spec }) => [
    spec.workload ?? spec.containerID ?? "",
    `node ${spec.node ?? "unknown"}`,
    (spec.ipNetworks ?? []).join(","),
    metadata.name,
  ]);
  return [{ title: "Containers", rows }];
}

/**
 * Everything that `detect` decides by, read once. The aggregated API of an earlier release is never asked: it may be broken,
 * and serves nothing that its own storage does not have.
 */
import { apiVersionOf, identity, OPERATOR_API, PRODUCT_API } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { readServerVersion } from "../../kube/server-version.ts";
import { isObject } from "../../model/shape.ts";
import { type Ledger, LedgerStore } from "../engine/ledger.ts";
import {
  FORMER_API,
  FORMER_API_SERVER,
  FORMER_CANAL,
  FORMER_CONFIG_MAP,
  FORMER_CONTROLLERS,
  FORMER_ETCD_SECRET,
  FORMER_NODE_DAEMON_SET,
  FORMER_TYPHA,
} from "../former-names.ts";
import { RELEASE_SECRET_TYPE, type ReleaseRecord, releaseRecord } from "../helm-releases.ts";
import { fieldsIn } from "../object-fields.ts";
import { type Workload, workloadOf } from "./workload.ts";

export interface ClusterSnapshot {
  /** Of the product: node agents, controllers, operator and what earlier releases had besides. */
  readonly workloads: readonly Workload[];
  /** Newest record of each release of the product's chart. */
  readonly releases: readonly ReleaseRecord[];
  readonly installation: Fields | undefined;
  /** `data` of the ConfigMaps that carry settings and network config, by `NAMESPACE/NAME`. */
  readonly configMaps: ReadonlyMap<string, Fields>;
  readonly hasEtcdSecret: boolean;
  readonly hasAggregatedApi: boolean;
  /** ClusterInformation as an earlier release stores it, and as this one does. */
  readonly formerInformation: Fields | undefined;
  readonly currentInformation: Fields | undefined;
  /** Whether the definitions of both kinds of storage exist. */
  readonly hasFormerDefinitions: boolean;
  readonly hasCurrentDefinitions: boolean;
  /** The ledger of an upgrade by this tool. */
  readonly ledger: Ledger | undefined;
  readonly orchestratorVersion: string;
  readonly nodes: readonly NodeFacts[];
}

export interface NodeFacts {
  readonly name: string;
  readonly annotations: Fields;
}

const AGENT_NAMES: readonly string[] = [
  identity.nodeAgent,
  FORMER_NODE_DAEMON_SET,
  FORMER_CANAL.daemonSet,
  FORMER_CANAL.etcdDaemonSet,
];
const DEPLOYMENT_NAMES: readonly string[] = [
  identity.controllers,
  identity.operator,
  FORMER_CONTROLLERS,
  FORMER_TYPHA,
  FORMER_API_SERVER.deployment,
];
const CONFIG_MAPS: readonly string[] = [FORMER_CONFIG_MAP, FORMER_CANAL.configMap, "cni-config"];
const MANIFEST_NAMESPACE = "kube-system";

export async function readSnapshot(objects: ClusterObjects): Promise<ClusterSnapshot> {
  const apiService = await objects.read(`/apis/apiregistration.k8s.io/v1/apiservices/${FORMER_API_SERVER.apiService}`);
  const hasAggregatedApi = isObject(fieldsIn(apiService, "spec")["service"]);
  const workloads = await readWorkloads(objects);
  const secretPath = `/api/v1/namespaces/${MANIFEST_NAMESPACE}/secrets/${FORMER_ETCD_SECRET}`;
  const [releases, configMaps, secret, ledger, nodes, orchestratorVersion] = await Promise.all([
    readReleases(objects),
    readConfigMaps(objects, workloads),
    objects.read(secretPath),
    LedgerStore.open(objects, async () => {}),
    objects.list("/api/v1/nodes"),
    readServerVersion(objects),
  ]);
  const [installation, formerInformation, formerDefinition, currentInformation, currentDefinition] = await Promise.all([
    objects.read(`/apis/${apiVersionOf(OPERATOR_API)}/installations/default`),
    objects.read(`/apis/${apiVersionOf(FORMER_API)}/clusterinformations/default`),
    readDefinition(objects, FORMER_API.group),
    hasAggregatedApi ? undefined : objects.read(`/apis/${apiVersionOf(PRODUCT_API)}/clusterinformations/default`),
    readDefinition(objects, PRODUCT_API.group),
  ]);
  return {
    workloads,
    releases,
    installation,
    configMaps,
    hasEtcdSecret: secret !== undefined,
    hasAggregatedApi,
    formerInformation,
    currentInformation,
    hasFormerDefinitions: formerDefinition !== undefined,
    hasCurrentDefinitions: currentDefinition !== undefined,
    ledger: ledger.current,
    orchestratorVersion,
    nodes: nodes.map((node) => {
      const metadata = fieldsIn(node, "metadata");
      return { name: String(metadata["name"]), annotations: fieldsIn(metadata, "annotations") };
    }),
  };
}

async function readWorkloads(objects: ClusterObjects): Promise<readonly Workload[]> {
  const [daemonSets, deployments] = await Promise.all([
    objects.list("/apis/apps/v1/daemonsets"),
    objects.list("/apis/apps/v1/deployments"),
  ]);
  const agents = daemonSets.flatMap((item) => workloadOf("DaemonSet", item) ?? []).filter(isAgent);
  const others = deployments.flatMap((item) => workloadOf("Deployment", item) ?? []);
  return [...agents, ...others.filter(({ name }) => DEPLOYMENT_NAMES.includes(name))];
}

/** The DaemonSets that do not carry the product's name are known by the container of its agent. */
function isAgent({ name, containers }: Workload): boolean {
  return AGENT_NAMES.includes(name) && containers.some((container) => container.name === identity.nodeAgent);
}

/** The newest record of each release; those that were uninstalled do not count. */
async function readReleases(objects: ClusterObjects): Promise<readonly ReleaseRecord[]> {
  const secrets = await objects.list("/api/v1/secrets", { fieldSelector: `type=${RELEASE_SECRET_TYPE}` });
  const newest = new Map<string, ReleaseRecord>();
  for (const record of secrets.flatMap((secret) => releaseRecord(secret) ?? [])) {
    if (record.chartName !== identity.operator) continue;
    const key = `${record.namespace}/${record.name}`;
    if ((newest.get(key)?.revision ?? 0) < record.revision) newest.set(key, record);
  }
  return [...newest.values()].filter(({ status }) => status !== "uninstalled");
}

async function readConfigMaps(
  objects: ClusterObjects,
  workloads: readonly Workload[],
): Promise<ReadonlyMap<string, Fields>> {
  const namespaces = new Set(workloads.filter(({ kind }) => kind === "DaemonSet").map(({ namespace }) => namespace));
  const places = [...namespaces].flatMap((namespace) => CONFIG_MAPS.map((name) => ({ namespace, name })));
  const entries = await Promise.all(
    places.map(async ({ namespace, name }): Promise<readonly (readonly [string, Fields])[]> => {
      const object = await objects.read(`/api/v1/namespaces/${namespace}/configmaps/${name}`);
      return object === undefined ? [] : [[`${namespace}/${name}`, fieldsIn(object, "data")]];
    }),
  );
  return new Map(entries.flat());
}

function readDefinition(objects: ClusterObjects, group: string): Promise<Fields | undefined> {
  return objects.read(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterinformations.${group}`);
}

/** The cluster of the demo: a control plane, to which the steps add two nodes and the network. */
import { join } from "node:path";
import { identity } from "../../../src/identity.ts";
import { type BareControlPlane, type BareNode, openBareControlPlane } from "../../../test/support/bare-cluster.ts";
import type { InstalledStore } from "../../../test/support/operator-install.ts";
import { type Pods, podsOn } from "../../../test/support/pods-in-namespace.ts";
import type { StepResult } from "../output.ts";

export type ClusterStore = InstalledStore;

export interface ClusterEnvironment extends StepResult {
  readonly store: ClusterStore;
  readonly cluster: BareControlPlane;
  readonly pods: Pods;
  /** Runs the admin tool where kubectl runs too, as the administrator of the cluster. */
  admin(...args: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

export type TwoNodes = readonly [BareNode, BareNode];

const ADMIN_TOOL = join(import.meta.dir, "../../../dist/bin", identity.adminTool);
const LIMIT_MILLISECONDS = 60_000;

export async function openCluster(store: ClusterStore): Promise<ClusterEnvironment> {
  const cluster = await openBareControlPlane();
  const { server, host } = cluster;
  const version = JSON.parse(await server.kubectl(["version", "--output=json"])) as KubectlVersion;
  const environment = {
    KUBECONFIG: server.adminKubeconfig,
    ...(store === "etcd" ? { ETCD_ENDPOINTS: server.etcdEndpoint } : { DATASTORE_TYPE: store }),
  };
  return {
    store,
    cluster,
    pods: podsOn(server),
    admin: (...args) => host.must([ADMIN_TOOL, ...args], { environment, limitMilliseconds: LIMIT_MILLISECONDS }),
    close: async () => cluster[Symbol.asyncDispose](),
    summary: `etcd and Kubernetes ${version.serverVersion.gitVersion} on a private host`,
  };
}

interface KubectlVersion {
  readonly serverVersion: { readonly gitVersion: string };
}

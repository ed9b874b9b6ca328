/** A real API server with the policies of `deploy/admission/`, and users with different rights. */
import { type ApiServer, startApiServer } from "../support/kube-apiserver.ts";
import { pollUntil } from "../support/poll.ts";
import {
  bindingRequest,
  creation,
  DEVELOPER,
  dryRun,
  FLOATING,
  LIST,
  manifest,
  PLUGIN,
  POLICIES,
  pod,
  RECORDED,
  type Request,
  SCHEDULER,
  WITHOUT_IPAM,
} from "./admission-requests.ts";

const ROLES = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: scheduler }
rules:
  - { apiGroups: [""], resources: [pods/binding, bindings], verbs: [create] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: plugin }
rules:
  - { apiGroups: [""], resources: [pods], verbs: [get] }
  - { apiGroups: [""], resources: [pods/status], verbs: [get, patch] }
`;

/**
 * Three namespaces: the list permits ipAddrsNoIpam to all of "permitted" and to
 * account "router" of "mixed", floatingIPs and allowedSourcePrefixes to all of "mixed", and nothing to "plain",
 * in which pod "older" has an address that it chose before the policies.
 */
export interface AdmissionCluster extends ApiServer {
  /** kubectl as another user. */
  as(user: string, ...request: Request): Promise<string>;
  /** The complaint of the server; empty if it accepts the request. */
  refusal(user: string, ...request: Request): Promise<string>;
  /** Policies and changes of the list count a moment after they were written. */
  untilRefused(object: string): Promise<void>;
  changeList(data: Readonly<Record<string, string | null>>): Promise<void>;
  /** Of a pod in namespace "plain". */
  annotationsOf(name: string): Promise<Readonly<Record<string, string>>>;
  podNames(namespace: string): Promise<readonly string[]>;
  /** The conditions of all ReplicaSets. */
  replicaSetConditions(namespace: string): Promise<string>;
}

export async function openAdmissionCluster(): Promise<AdmissionCluster> {
  const server = await startApiServer({ with: ["controller-manager"] });
  const cluster = { ...server, ...requestsTo(server) };
  try {
    await createUsers(cluster);
    await createPolicies(cluster);
    return cluster;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function requestsTo(server: ApiServer): Omit<AdmissionCluster, keyof ApiServer> {
  const as = (user: string, ...[args, stdin]: Request) => server.kubectl([`--as=${user}`, ...args], stdin);
  const refusal = (user: string, ...request: Request) =>
    as(user, ...request).then(
      () => "",
      (error: Error) => error.message,
    );
  return {
    as,
    refusal,
    untilRefused: (object) => pollUntil(async () => (await refusal(DEVELOPER, ...dryRun(object))) !== "", "a refusal"),
    async changeList(data) {
      const patch = JSON.stringify({ data });
      await server.kubectl(["patch", "configmap", LIST, "--namespace=kube-system", "--type=merge", `--patch=${patch}`]);
    },
    async annotationsOf(name) {
      type Pod = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };
      return (await server.get<Pod>("pod", name, "--namespace=plain")).metadata.annotations ?? {};
    },
    async podNames(namespace) {
      type Pods = { readonly items: readonly { readonly metadata: { readonly name: string } }[] };
      return (await server.get<Pods>("pods", `--namespace=${namespace}`)).items.map(({ metadata }) => metadata.name);
    },
    async replicaSetConditions(namespace) {
      type ReplicaSet = { readonly status: { readonly conditions?: readonly { readonly message: string }[] } };
      const { items } = await server.get<{ items: readonly ReplicaSet[] }>("replicasets", `--namespace=${namespace}`);
      const conditions = items.flatMap(({ status }) => status.conditions ?? []);
      return conditions.map(({ message }) => message).join("\n");
    },
  };
}

async function createUsers(cluster: AdmissionCluster): Promise<void> {
  const roles = { [DEVELOPER]: "edit", [SCHEDULER]: "scheduler", [PLUGIN]: "plugin" };
  await cluster.apply(ROLES);
  for (const [user, role] of Object.entries(roles)) {
    await cluster.kubectl(["create", "clusterrolebinding", user, `--clusterrole=${role}`, `--user=${user}`]);
  }
  for (const name of ["plain", "permitted", "mixed"]) await cluster.createNamespace(name);
  await cluster.kubectl(["create", "serviceaccount", "router", "--namespace=mixed"]);
  // The controller manager fills the role "edit".
  const probe = dryRun(pod("plain", "probe"));
  await pollUntil(async () => (await cluster.refusal(DEVELOPER, ...probe)) === "", "the role");
}

async function createPolicies(cluster: AdmissionCluster): Promise<void> {
  // Without the policies everybody may choose.
  const older = pod("plain", "older", { annotations: { [WITHOUT_IPAM]: '["192.0.2.1"]' } });
  await cluster.as(DEVELOPER, ...creation(older));

  await cluster.apply(manifest(LIST));
  await cluster.changeList({
    ipAddrsNoIpam: "# routers\n permitted \nmixed/router\n",
    floatingIPs: "mixed",
    allowedSourcePrefixes: "mixed",
  });
  await cluster.apply(manifest(POLICIES));
  await cluster.untilRefused(pod("plain", "probe", { annotations: { [WITHOUT_IPAM]: "[]" } }));
  await cluster.untilRefused(pod("plain", "probe", { annotations: { [RECORDED]: "192.0.2.1/32" } }));
  await pollUntil(
    async () => (await cluster.refusal(SCHEDULER, ...bindingRequest("older", FLOATING))).includes("itself"),
    "all policies",
  );
}

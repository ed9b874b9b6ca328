/** What tests do as the administrator of a cluster, with the real kubectl. */
import type { KubeCredentials } from "./kube-credentials.ts";

export interface ServiceAccountPlan {
  readonly name: string;
  /** Default: `kube-system`. */
  readonly namespace?: string;
  /** Bound to the account, in all namespaces. */
  readonly clusterRole?: string;
  /** What the token is bound to; a pod must be in the same namespace. */
  readonly boundTo?: { readonly kind: "Node" | "Pod"; readonly name: string };
}

export interface ServiceAccountUser {
  /** The path of its kubeconfig. */
  readonly kubeconfig: string;
  readonly token: string;
  /** As the audit log names it. */
  readonly user: string;
}

export interface Kubectl {
  /** Runs kubectl as the administrator; returns what it printed, or throws with what it complained about. */
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
  /** Creates or changes what the YAML (or JSON) text describes. */
  apply(yaml: string): Promise<void>;
  /** The object, or the list, as kubectl prints it in JSON. */
  get<T>(...args: readonly string[]): Promise<T>;
  /** Creates a namespace in which pods can be created at once. */
  createNamespace(name: string): Promise<void>;
  /** Creates a ServiceAccount with that role and a token for it. */
  serviceAccount(plan: ServiceAccountPlan): Promise<ServiceAccountUser>;
}

/** `program`: kubectl, with a prefix if it has to run in another namespace. */
export function makeKubectl(program: readonly string[], credentials: KubeCredentials): Kubectl {
  const kubectl = async (args: readonly string[], stdin?: string): Promise<string> => {
    const command = [...program, `--kubeconfig=${credentials.kubeconfig("admin")}`, ...args];
    const child = Bun.spawn(command, {
      stdin: stdin === undefined ? "ignore" : new Blob([stdin]),
      stdout: "pipe",
      stderr: "pipe",
      // Its cache of discovery would go to the home directory.
      env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent" },
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr.trim()}`);
    return stdout;
  };
  const apply = async (yaml: string) => void (await kubectl(["apply", "--filename=-"], yaml));
  return {
    kubectl,
    apply,
    get: async (...args) => JSON.parse(await kubectl(["get", ...args, "--output=json"])),
    async createNamespace(name) {
      const of = { apiVersion: "v1", metadata: { name } };
      const account = { ...of, kind: "ServiceAccount", metadata: { name: "default", namespace: name } };
      // The controller manager, if there is one, creates the account as well: only the server's own apply never conflicts with it.
      const both = JSON.stringify(listOf([{ ...of, kind: "Namespace" }, account]));
      await kubectl(["apply", "--server-side", "--filename=-"], both);
    },
    async serviceAccount({ name, namespace = "kube-system", clusterRole, boundTo }) {
      await apply(JSON.stringify(listOf(accountObjects(name, namespace, clusterRole))));
      const bound = boundTo && [`--bound-object-kind=${boundTo.kind}`, `--bound-object-name=${boundTo.name}`];
      const create = ["create", "token", name, `--namespace=${namespace}`, "--duration=24h", ...(bound ?? [])];
      const token = (await kubectl(create)).trim();
      const file = [namespace, name, ...(boundTo === undefined ? [] : [boundTo.name])].join("-");
      return {
        kubeconfig: credentials.writeKubeconfig(file, { token }),
        token,
        user: `system:serviceaccount:${namespace}:${name}`,
      };
    },
  };
}

function accountObjects(name: string, namespace: string, clusterRole: string | undefined): readonly object[] {
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } };
  if (clusterRole === undefined) return [account];
  const apiGroup = "rbac.authorization.k8s.io";
  return [
    account,
    {
      apiVersion: `${apiGroup}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: `${namespace}-${name}` },
      roleRef: { apiGroup, kind: "ClusterRole", name: clusterRole },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    },
  ];
}

function listOf(items: readonly object[]): object {
  return { apiVersion: "v1", kind: "List", items };
}

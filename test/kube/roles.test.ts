/** Each permission of the plugin's roles is needed: without it, the error names the verb, the resource and the rule to add. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import {
  type Permission,
  permissionsOf,
  type RoleDatastore,
  roleManifest,
  roleName,
  roleObject,
} from "../../src/release/roles/role-files.ts";
import { meansWith } from "../support/imitated-api.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

const METHODS: Readonly<Record<string, KubeRequest["method"]>> = {
  get: "GET",
  list: "GET",
  watch: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
};

/** A request that needs the permission; what it is about need not exist. A watch from no revision is refused at once. */
function requestFor({ group, resource, verb }: Permission): KubeRequest {
  const method = METHODS[verb] ?? "GET";
  const [plural = "", subresource] = resource.split("/");
  const root = group === "" ? "/api/v1" : `/apis/${group}/${group.endsWith(".k8s.io") ? "v1" : "v3"}`;
  const base = plural === "pods" ? `${root}/namespaces/default/pods` : `${root}/${plural}`;
  const name = ["list", "watch", "create"].includes(verb) ? "" : "/none";
  return {
    method,
    path: `${base}${name}${subresource === undefined ? "" : `/${subresource}`}`,
    ...(verb === "watch" ? { query: { watch: "1", resourceVersion: "none" } } : {}),
    ...(method === "GET" || method === "DELETE" ? {} : { body: "{}" }),
    ...(verb === "patch" ? { contentType: "application/merge-patch+json" } : {}),
  };
}

describe.each<RoleDatastore>(["etcd", "kubernetes", "node-kubernetes"])("role %s", (datastore) => {
  let server: ApiServer;
  let plugin: KubeClient;
  let admin: KubeClient;
  const permissions = permissionsOf(datastore);
  const name = roleName(datastore, identity);

  beforeAll(async () => {
    if (problem !== undefined) return;
    server = await startApiServer();
    const account = {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: identity.product, namespace: "kube-system" },
    };
    if (datastore === "node-kubernetes") await server.apply(JSON.stringify(account));
    await server.apply(await Bun.file(join(import.meta.dir, `../../deploy/rbac/${name}.yaml`)).text());
    const token = await server.kubectl(["create", "token", identity.product, "--namespace=kube-system"]);
    const kubeconfig = server.credentials.writeKubeconfig("plugin", { token: token.trim() });
    plugin = await openKubeClient({ kubeconfigs: [kubeconfig] }, meansWith());
    admin = await openKubeClient({ kubeconfigs: [server.adminKubeconfig] }, meansWith());
  });
  afterAll(async () => {
    await Promise.all([plugin?.close(), admin?.close(), server?.stop()]);
  });

  async function setRole(permitted: readonly Permission[]): Promise<void> {
    const path = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`;
    const request = { method: "PUT", path, body: JSON.stringify(roleObject(datastore, identity, permitted)) } as const;
    requireOk(await admin.request(request), request);
  }

  const isForbidden = async (permission: Permission) => (await plugin.request(requestFor(permission))).status === 403;

  testServer("the file in deploy/ is the one of this table", async () => {
    expect(await Bun.file(join(import.meta.dir, `../../deploy/rbac/${name}.yaml`)).text()).toBe(
      roleManifest(datastore, identity),
    );
  });

  testServer("allows what it lists", async () => {
    for (const permission of permissions)
      expect([permission, await isForbidden(permission)]).toEqual([permission, false]);
  });

  testServer("allows nothing else", async () => {
    for (const [group, resource, verb] of [
      ["", "secrets", "get"],
      ["", "configmaps", "list"],
      ["", "pods", "create"],
      ["", "pods", "delete"],
      ["", "pods", "patch"],
      ["", "nodes", "patch"],
      ["", "namespaces", "delete"],
      [identity.apiGroup, "ippools", "create"],
      [identity.apiGroup, "ippools", "delete"],
      ...(datastore === "etcd"
        ? ([
            ["", "pods/status", "patch"],
            [identity.apiGroup, "ippools", "list"],
          ] as const)
        : []),
    ] as const) {
      expect([resource, verb, await isForbidden({ group, resource, verb })]).toEqual([resource, verb, true]);
    }
  });

  testServer("allows the agent to read the Secret with the passwords of BGP, and no other", async () => {
    const path = "/api/v1/namespaces/kube-system/secrets";
    const status = async (name: string) => (await plugin.request({ method: "GET", path: `${path}/${name}` })).status;

    expect([await status("bgp-passwords"), await status("other")]).toEqual([
      datastore === "kubernetes" ? 403 : 404,
      403,
    ]);
  });

  testServer("without one of them, the error names it", async () => {
    for (const missing of permissions) {
      await setRole(permissions.filter((each) => each !== missing));
      await pollUntil(() => isForbidden(missing), `the role without ${missing.verb} ${missing.resource}`);
      const request = requestFor(missing);
      const response = await plugin.request(request);
      const failure = await Promise.try(() => requireOk(response, request)).catch((error: unknown) => error);
      expect(failure).toMatchObject({
        kind: "api-unavailable",
        message: expect.stringContaining(`the role lacks the permission to ${missing.verb} ${missing.resource}`),
        details: `add the rule {apiGroups: ["${missing.group}"], resources: ["${missing.resource}"], verbs: ["${missing.verb}"]} to the role`,
      });
    }
  });
});

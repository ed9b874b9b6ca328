/**
 * For the node agent: its calls share the clients of the orchestrator's API, and
 * with them the decoded kubeconfig, the credentials and the connection.
 */
import type { KubeAccess } from "../config/kube-access.ts";
import { statusAt } from "../file-status.ts";
import type { KubeClient } from "./api.ts";
import { type OpenKubeClient, openKubeClient } from "./client.ts";

interface Shared {
  /** Changes if a kubeconfig is rewritten or replaced. The client itself follows the files that it names. */
  readonly sign: string;
  readonly client: Promise<KubeClient>;
}

/** Each call returns a function with its own set of shared clients. `close()` of a shared client does nothing. */
export function shareKubeClients(open: OpenKubeClient = openKubeClient): OpenKubeClient {
  const clients = new Map<string, Shared>();
  return async (access, means) => {
    const key = JSON.stringify(access);
    const sign = signOf(access);
    const known = clients.get(key);
    const client = known?.sign === sign ? known.client : open(access, means);
    clients.set(key, { sign, client });
    // A kubeconfig that cannot be used now may be corrected.
    client.catch(() => clients.get(key)?.client === client && clients.delete(key));
    return withoutClosing(await client);
  };
}

function signOf({ kubeconfigs = [] }: KubeAccess): string {
  return kubeconfigs
    .map((path) => statusAt(path))
    .map((status) => (status === undefined ? "none" : `${status.place} ${status.changed}`))
    .join();
}

function withoutClosing(client: KubeClient): KubeClient {
  return {
    request: (request) => client.request(request),
    watch: (path, query, signal) => client.watch(path, query, signal),
    close: async () => {},
  };
}

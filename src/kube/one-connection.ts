/**
 * For a process that ends with its call: its parts (the datastore, the facts about
 * the pod) use one connection to the API. The kernel closes it at exit.
 */
import type { KubeClient } from "./api.ts";
import { type OpenKubeClient, openKubeClient } from "./client.ts";

/** `close()` of a client does nothing: another part may still use the connection. */
export function openOnOneConnection(open: OpenKubeClient = openKubeClient): OpenKubeClient {
  const clients = new Map<string, Promise<KubeClient>>();
  return async (access, means) => {
    const key = JSON.stringify(access);
    const opening = clients.get(key) ?? open(access, means);
    clients.set(key, opening);
    const client = await opening;
    return {
      request: (request) => client.request(request),
      watch: (path, query, signal) => client.watch(path, query, signal),
      close: async () => {},
    };
  };
}

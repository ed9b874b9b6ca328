import type { KubeClient } from "../../../src/kube/api.ts";

/** A client whose writes carry the name of the program, which the server takes from the User-Agent of a real one. */
export function asProgram(client: KubeClient, program: string): KubeClient {
  return {
    request: (request) => {
      if (request.method === "GET") return client.request(request);
      return client.request({ ...request, query: { fieldManager: program, ...request.query } });
    },
    watch: (path, query, signal) => client.watch(path, query, signal),
    close: () => client.close(),
  };
}

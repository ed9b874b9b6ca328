/** `--log-level debug`: every request to the datastore and to the orchestrator's API on stderr, with its time and without its content. */

import type { Datastore } from "../../datastore/datastore.ts";
import { transactOn } from "../../datastore/transact.ts";
import type { KubeClient } from "../../kube/api.ts";
import type { Given } from "./command.ts";
import type { Context } from "./context.ts";
import { LOG_LEVEL_OPTION } from "./option.ts";

export function withRequestLog(context: Context, given: Given): Context {
  if (given.values.get(LOG_LEVEL_OPTION.name) !== "debug") return context;
  const logged = async <Result>(what: string, work: () => Promise<Result>): Promise<Result> => {
    const start = context.now().getTime();
    let outcome = "failed";
    try {
      const result = await work();
      outcome = "done";
      return result;
    } finally {
      const milliseconds = context.now().getTime() - start;
      context.stderr(`debug: ${what}: ${outcome} in ${milliseconds} ms\n`);
    }
  };
  return {
    ...context,
    openDatastore: async (settings) =>
      loggedStore(await logged(`open the ${settings.kind} datastore`, () => context.openDatastore(settings)), logged),
    openKubeClient: async (access) =>
      loggedClient(await logged("connect to the API", () => context.openKubeClient(access)), logged),
  };
}

type Logged = <Result>(what: string, work: () => Promise<Result>) => Promise<Result>;

function loggedStore(store: Datastore, logged: Logged): Datastore {
  const own: Datastore = {
    atomicity: store.atomicity,
    isOrchestratorApi: store.isOrchestratorApi,
    read: (wanted, at) => {
      const what = wanted.map((each) => (each.kind === "key" ? each.key : `${each.prefix}*`));
      return logged(`read ${what.join(" ")}`, () => store.read(wanted, at));
    },
    commit: (changes) =>
      logged(`commit ${changes.map(({ kind, key }) => `${kind} ${key}`).join(", ")}`, () => store.commit(changes)),
    transact: (wanted, decide) => transactOn(own, wanted, decide),
    clock: () => store.clock?.(),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
  };
  return own;
}

function loggedClient(client: KubeClient, logged: Logged): KubeClient {
  return {
    request: (request) => logged(`${request.method} ${request.path}`, () => client.request(request)),
    watch: (path, query, signal) => client.watch(path, query, signal),
    close: () => client.close(),
  };
}

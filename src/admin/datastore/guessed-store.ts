/**
 * The default etcd of this host, if nothing has selected a datastore. It may belong to another program, so it is read
 * but not written, unless its ClusterInformation shows that it is one of ours.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { transactOn } from "../../datastore/transact.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";

interface Guess {
  /** The endpoints, for messages. */
  readonly place: string;
  /** Called before a write that is allowed. */
  onWrite(): void;
}

export function refuseGuessedWrites(store: Datastore, { place, onWrite }: Guess): Datastore {
  const guarded: Datastore = {
    atomicity: store.atomicity,
    isOrchestratorApi: store.isOrchestratorApi,
    read: (wanted, at) => store.read(wanted, at),
    async commit(changes) {
      if (changes.every(({ kind }) => kind === "expect")) return store.commit(changes);
      const { answers } = await store.read([WANTED_CLUSTER]);
      if (answers.flat().length === 0) throw refusal(place);
      onWrite();
      return store.commit(changes);
    },
    transact: (wanted, decide) => transactOn(guarded, wanted, decide),
    clock: () => store.clock?.(),
    watch: (prefix, from, signal) => store.watch(prefix, from, signal),
    close: () => store.close(),
  };
  return guarded;
}

const NOBODY = "no option, environment variable, settings file or network config selects a datastore";

function refusal(place: string): PluginError {
  const state = `it is only the default (${NOBODY}), and it is not initialized`;
  const ways = [
    "to use a file on this host instead, add --datastore-type embedded",
    `if this etcd is meant, run: ${identity.adminTool} datastore init --etcd-endpoints ${place}`,
  ];
  return new PluginError("config-invalid", `Cannot write to etcd at "${place}": ${state}`, {
    details: ways.join("; "),
  });
}

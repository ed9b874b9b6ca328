import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { DatastoreLocked } from "../../ipam/cluster.ts";
import { clusterInformation, withClusterVersion } from "../../model/cluster-information.ts";
import { resourceKey } from "../../model/keys.ts";
import { VERSION } from "../../version.ts";
import { type Command, type Context, EXIT_OK, wantsJson } from "../command.ts";
import { readOrExplain } from "../resources/unreadable-remedy.ts";
import { withNewDatastore } from "./open.ts";

const KEY = resourceKey("clusterinformations", { name: "default" });

interface Initialization {
  readonly state: "initialized" | "already initialized" | "locked";
  readonly clusterGUID: string;
}

export const datastoreInit: Command = {
  kind: "command",
  name: "init",
  summary: "Initialize an empty datastore",
  description: [
    "Creates the ClusterInformation resource, which plugins and agents require before they use a datastore.",
    "Running it again changes nothing. Fails if the datastore is locked: an upgrade or a migration is in progress.",
  ].join("\n"),
  needsDatastore: true,
  examples: [
    { command: "datastore init --etcd-endpoints http://10.0.0.1:2379", does: "Initialize a new etcd" },
    { command: "datastore init --datastore-type embedded", does: "Initialize an embedded datastore on a single host" },
  ],
  async run(context, given) {
    const result = await withNewDatastore(context, given, (store) => initialize(store, context));
    if (result.state === "locked") throw new DatastoreLocked();
    context.stdout(wantsJson(given) ? `${JSON.stringify(result)}\n` : textOf(result));
    return EXIT_OK;
  },
};

function textOf({ state, clusterGUID }: Initialization): string {
  const cluster = `cluster ${clusterGUID || "without a GUID"}`;
  return state === "initialized"
    ? `Initialized the datastore (${cluster})\n`
    : `The datastore is already initialized (${cluster})\n`;
}

/** `before`: what has to be there by the time the datastore is initialized; run only if it is not. A locked one stays as it is. */
export async function initialize(
  store: Datastore,
  context: Pick<Context, "now" | "uuid">,
  before?: () => Promise<void>,
): Promise<Initialization> {
  const found = await readState(store);
  if (found) return found;

  await before?.();
  const uid = context.uuid();
  const clusterGUID = uid.replaceAll("-", "");
  const metadata = { name: "default", uid, creationTimestamp: context.now().toISOString() };
  const ready = clusterInformation.make(metadata, { clusterGUID, datastoreReady: true });
  const value = clusterInformation.write(withClusterVersion(ready, VERSION));
  const written = await store.commit([{ kind: "create", key: KEY, value }]);
  if (written.ok) return { state: "initialized", clusterGUID };

  // Another process created it first; its record counts.
  const theirs = await readState(store);
  if (theirs) return theirs;
  throw new PluginError(
    "try-again-later",
    "Cannot initialize the datastore: others create and delete its ClusterInformation",
  );
}

async function readState(store: Datastore): Promise<Initialization | undefined> {
  const entry = (await store.read([{ kind: "key", key: KEY }])).answers[0]?.[0];
  if (!entry) return undefined;
  const { spec } = readOrExplain(entry, ({ value, key }) => clusterInformation.read(value, key));
  const state = spec.datastoreReady === false ? "locked" : "already initialized";
  return { state, clusterGUID: spec.clusterGUID ?? "" };
}

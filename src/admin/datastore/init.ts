import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { clusterInformation, withClusterVersion } from "../../model/cluster-information.ts";
import { resourceKey } from "../../model/keys.ts";
import { VERSION } from "../../version.ts";
import { type Command, type Context, EXIT_OK, wantsJson } from "../command.ts";
import { readOrExplain } from "../resources/way-out.ts";
import { withNewDatastore } from "./open.ts";

const KEY = resourceKey("clusterinformations", { name: "default" });

/** What was found, or made. */
interface Initialised {
  readonly state: "made ready" | "ready already";
  readonly clusterGUID: string;
}

export const datastoreInit: Command = {
  kind: "command",
  name: "init",
  summary: "Make a bare datastore ready for use",
  description: [
    "Writes the ClusterInformation that plugins and agents look for before they use a datastore.",
    "Run again it changes nothing. A datastore that says it is not ready is left alone: an upgrade may be under way.",
  ].join("\n"),
  needsDatastore: true,
  examples: [
    { command: "datastore init --etcd-endpoints http://10.0.0.1:2379", does: "A new etcd" },
    { command: "datastore init --datastore-type embedded", does: "A single host without a server" },
  ],
  async run(context, given) {
    const done = await withNewDatastore(context, given, (store) => initialise(store, context));
    context.stdout(
      wantsJson(given)
        ? `${JSON.stringify(done)}\n`
        : `The datastore is ${done.state} (cluster ${done.clusterGUID || "without a GUID"})\n`,
    );
    return EXIT_OK;
  },
};

async function initialise(store: Datastore, context: Pick<Context, "now" | "uuid">): Promise<Initialised> {
  const found = await readState(store);
  if (found) return found;

  const uid = context.uuid();
  const clusterGUID = uid.replaceAll("-", "");
  const metadata = { name: "default", uid, creationTimestamp: context.now().toISOString() };
  const ready = clusterInformation.make(metadata, { clusterGUID, datastoreReady: true });
  const value = clusterInformation.write(withClusterVersion(ready, VERSION));
  const written = await store.commit([{ kind: "create", key: KEY, value }]);
  if (written.ok) return { state: "made ready", clusterGUID };

  // Somebody else was quicker; what they wrote counts.
  const theirs = await readState(store);
  if (theirs) return theirs;
  throw new PluginError("try-again-later", "Cannot make the datastore ready: its ClusterInformation comes and goes");
}

async function readState(store: Datastore): Promise<Initialised | undefined> {
  const entry = (await store.read([{ kind: "key", key: KEY }])).answers[0]?.[0];
  if (!entry) return undefined;
  const { spec } = readOrExplain(entry, ({ value, key }) => clusterInformation.read(value, key));
  if (spec.datastoreReady !== false) return { state: "ready already", clusterGUID: spec.clusterGUID ?? "" };
  throw new PluginError("try-again-later", "Cannot make the datastore ready: its ClusterInformation says it is not", {
    details: "an upgrade or a migration may be under way; when it is not, set spec.datastoreReady to true with patch",
  });
}

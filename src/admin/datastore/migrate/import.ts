import { counted } from "../../../counted.ts";
import type { Entry } from "../../../datastore/datastore.ts";
import { refuseAnotherCluster } from "../../../ipam/confirm-cluster.ts";
import { liveObjects } from "../../../kube/live-objects.ts";
import { clusterObjects } from "../../../kube/objects.ts";
import { readServerVersion } from "../../../kube/server-version.ts";
import { CLUSTER_INFORMATION } from "../../../model/kinds.ts";
import { crdObjects } from "../../../release/crds/released-crds.ts";
import { notesForServer, servedBy } from "../../../release/older-servers.ts";
import type { ExportFile } from "../../../upgrade/datastore-migration/export-file.ts";
import { checkData, importData } from "../../../upgrade/datastore-migration/migrate.ts";
import { applyForced } from "../../../upgrade/engine/apply-forced.ts";
import { untilEstablished } from "../../../upgrade/established-definitions.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given } from "../../main/command.ts";
import type { Clock, DatastoreAccess } from "../../main/context.ts";
import { withDatastoreAndApi } from "../open.ts";
import { readExport } from "./read-export.ts";
import { requireApi } from "./require-api.ts";

/** Of the cluster that was exported. */
function informationOf({ records }: ExportFile): Entry | undefined {
  const found = records.find(({ key }) => key === CLUSTER_INFORMATION.key({ name: "default" }));
  return found && { key: found.key, value: found.value, revision: "" };
}

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const file = await readExport(context, given);
  return withDatastoreAndApi(context, given, async (store, client, settings) => {
    requireApi(settings, "import into");
    refuseAnotherCluster(informationOf(file), await liveObjects(client).readClusterUid());
    const objects = clusterObjects(client, context.signal);
    const serverVersion = await readServerVersion(objects);
    const definitions = servedBy(serverVersion, crdObjects());
    for (const note of notesForServer(serverVersion, crdObjects())) context.stderr(`Note: ${note}\n`);
    await applyForced(objects, definitions);
    await untilEstablished({ objects, wait: context.wait }, definitions);
    const notes = await importData(store, file, (line) => context.stderr(`${line}\n`));
    for (const note of notes) context.stderr(`Note: ${note}\n`);
    const differences = await checkData(store, file);
    for (const line of differences) context.stderr(`${line}\n`);
    if (differences.length > 0) return EXIT_FAILED;
    const records = counted(file.records.length, "record");
    context.stdout(`${records} of export ${file.run} are in the datastore, which is locked\n`);
    return EXIT_OK;
  });
}

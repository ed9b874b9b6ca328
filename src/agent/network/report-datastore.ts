/** Writes how old what the agent knows is, for `node status`: also while nothing can be read, which is when somebody asks. */

import { type ReplicaStatus, worstOf } from "../../datastore/replica/status.ts";
import { DATASTORE_STATUS_FILE, writeDatastoreStatus } from "../../datastore/replica/status-file.ts";
import type { Replica } from "../../datastore/replica.ts";
import type { AgentMeans } from "../means.ts";

const EVERY_MILLISECONDS = 10_000;

export interface ReportMeans {
  readonly means: Pick<AgentMeans, "clock" | "files">;
  readonly replicas: readonly Pick<Replica<unknown>, "status">[];
  readonly warn: (message: string) => void;
}

export async function reportDatastore({ means, replicas, warn }: ReportMeans, stop: AbortSignal): Promise<void> {
  const { clock, files } = means;
  const shown = files.openFolder(files.runDirectory);
  let written = "";
  while (!stop.aborted) {
    const status: ReplicaStatus = worstOf(replicas.map((replica) => replica.status));
    const text = writeDatastoreStatus(status, { elapsed: clock.elapsed(), now: clock.now() });
    try {
      if (text !== written) shown.write(DATASTORE_STATUS_FILE, text);
      written = text;
    } catch (failure) {
      warn(`Cannot write "${shown.path}/${DATASTORE_STATUS_FILE}": ${failure}`);
    }
    await clock.wait(EVERY_MILLISECONDS, stop);
  }
}

/** Opens the orchestrator's API as the datastore of this product. */
import type { KubeAccess } from "../../config/kube-access.ts";
import { type KubeMeans, type OpenKubeClient, openKubeClient } from "../../kube/client.ts";
import type { Datastore } from "../datastore.ts";
import { productMapping } from "./product-mapping.ts";
import { openKubeStore } from "./store.ts";

export interface KubeOpenOptions {
  /** For programs that provide credentials, and for the address of the API inside a pod. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Logs a warning. */
  readonly warn?: (message: string) => void;
  /** For a connection that is used for more than the datastore; by default it has its own. */
  readonly openClient?: OpenKubeClient;
  /** Those of the process if absent. */
  readonly clock?: Pick<KubeMeans, "now" | "elapsed">;
  readonly uuid?: () => string;
}

export interface KubeMemory {
  /** For a process that stays: copies what every assignment reads. */
  readonly copiesRecords?: boolean;
  /** Told why records are not copied. */
  readonly report?: (problem: string) => void;
}

const PROCESS_CLOCK = { now: () => new Date(), elapsed: () => performance.now() };

/** Connects with the first request. */
export async function openKube(
  access: KubeAccess,
  {
    environment = {},
    warn = () => {},
    openClient = openKubeClient,
    clock = PROCESS_CLOCK,
    uuid = () => crypto.randomUUID(),
    copiesRecords = false,
    report,
  }: KubeOpenOptions & KubeMemory,
): Promise<Datastore> {
  const client = await openClient(access, {
    environment,
    warn,
    ...clock,
    unavailableAs: "datastore-unavailable",
  });
  const means = {
    api: client,
    mappings: productMapping(uuid),
    close: () => client.close(),
    elapsed: clock.elapsed,
    wall: () => clock.now().getTime(),
  };
  if (!copiesRecords) return openKubeStore(means);
  const { openCopyingStore } = await import("./copying-store.ts");
  return openCopyingStore((observer) => openKubeStore({ ...means, observer }), report === undefined ? {} : { report });
}

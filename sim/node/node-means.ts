/** What the programs of a simulated machine have in common. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import type { HostKernel } from "../../src/linux/host-kernel.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import type { NodeFiles } from "./node-files.ts";

export interface MachineMeans {
  /** Of the node, and of its host. */
  readonly name: string;
  readonly files: NodeFiles;
  readonly kernelFor: (process: SimulatedProcess) => HostKernel;
  /** New connections, for each process that starts. */
  readonly openStore: (process: SimulatedProcess) => Datastore;
  /** For the process that serves the calls of others. */
  readonly openServingStore: (process: SimulatedProcess) => Datastore;
  readonly openApi: (process: SimulatedProcess) => KubeClient;
  readonly machineIdentity: string;
  readonly bootedAt: Date;
}

/** As `crypto.randomUUID()`, from the numbers of the process. */
export function uuidsOf({ random }: SimulatedProcess): () => string {
  const own = random.fork("uuid");
  const digits = (count: number) => Array.from({ length: count }, () => own.below(16).toString(16)).join("");
  return () => `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`;
}

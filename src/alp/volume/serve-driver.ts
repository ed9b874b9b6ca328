/**
 * Serves the CSI driver where the kubelet looks for it, as long as there is a kubelet.
 *
 *   KUBELET/plugins/DRIVER/csi.sock               CSI
 *   KUBELET/plugins_registry/DRIVER-reg.sock      registration: the kubelet finds it, also when the kubelet starts again
 */
import { mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { GrpcServer } from "../../grpc/server.ts";
import { identity } from "../../identity.ts";
import { removeIfEmpty } from "../../linux/place-file.ts";
import { csiServices, registrationService } from "./csi-services.ts";
import type { PublishedVolumes } from "./published-volumes.ts";

const { csiDriver } = identity;
/** How often the kubelet's directory is looked for, and whether the sockets are still there. */
const LOOK_MILLISECONDS = 2_000;
const OWNER_ONLY = 0o600;
const DIRECTORY_MODE = 0o750;

export interface DriverOptions {
  /** Directory of the kubelet. */
  readonly kubelet: string;
  /** Name of this node. */
  readonly node: string;
  readonly volumes: PublishedVolumes;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Resolves when the signal is aborted. */
export async function serveDriver(options: DriverOptions, signal: AbortSignal): Promise<void> {
  const { kubelet } = options;
  while (!signal.aborted) {
    if (placeOf(registryOf(kubelet)) === undefined) await pause(options, signal);
    else await serveUntilRemoved(options, signal);
  }
}

/** Of an agent that does not run: the kubelet then forgets the driver. */
export function removeDriver(kubelet: string): void {
  const { registration, csi, directory } = socketsIn(kubelet);
  for (const path of [registration, csi]) rmSync(path, { force: true });
  removeIfEmpty(directory);
}

function socketsIn(kubelet: string) {
  const directory = join(kubelet, "plugins", csiDriver);
  return {
    directory,
    csi: join(directory, "csi.sock"),
    registration: join(registryOf(kubelet), `${csiDriver}-reg.sock`),
  };
}

/** The kubelet makes it when it starts. */
function registryOf(kubelet: string): string {
  return join(kubelet, "plugins_registry");
}

async function serveUntilRemoved(options: DriverOptions, signal: AbortSignal): Promise<void> {
  const { kubelet, node, volumes, log } = options;
  const { directory, csi, registration } = socketsIn(kubelet);
  // Hosts without a kubelet do not need it.
  const { serveGrpc } = await import("../../grpc/server.ts");
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  const servers: GrpcServer[] = [];
  try {
    servers.push(await serveGrpc({ path: csi, mode: OWNER_ONLY }, csiServices(volumes, node)));
    // Last: the kubelet calls the driver when it finds this socket.
    const notify = (error: string) => logRegistration(error, log);
    const handlers = registrationService({ endpoint: csi, notify });
    servers.push(await serveGrpc({ path: registration, mode: OWNER_ONLY }, handlers));
    const served = placesOf([csi, registration]);
    while (!signal.aborted && placesOf([csi, registration]) === served) await pause(options, signal);
  } finally {
    await Promise.all(servers.toReversed().map((server) => server.close()));
    removeIfEmpty(directory);
  }
}

/** Also tries again what could not be recovered when the agent started, or at the last time. */
async function pause({ volumes, wait, log }: DriverOptions, signal: AbortSignal): Promise<void> {
  await wait(LOOK_MILLISECONDS, signal);
  if (signal.aborted || volumes.isRecovered || volumes.recover().length > 0) return;
  log("All volumes of sidecars are recovered", "INFO");
}

function logRegistration(error: string, log: DriverOptions["log"]): void {
  if (error === "") log(`The kubelet uses the CSI driver "${csiDriver}"`, "INFO");
  else log(`The kubelet refuses the CSI driver "${csiDriver}": ${error}`, "WARNING");
}

function placesOf(paths: readonly string[]): string {
  return paths.map(placeOf).join(" ");
}

/** `undefined` if it does not exist. */
function placeOf(path: string): string | undefined {
  const status = statSync(path, { throwIfNoEntry: false });
  return status === undefined ? undefined : `${status.dev}/${status.ino}`;
}

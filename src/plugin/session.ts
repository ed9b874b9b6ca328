/**
 * One call of the plugin and all it works with: config, log, node name, and a
 * datastore that is opened while the kernel is being asked.
 *
 * The datastore stays open when the process is told to stop: whatever was
 * taken must be given back.
 */
import type { CniCall } from "../cni/call.ts";
import type { CallContext } from "../cni/serve.ts";
import { networkConfigOf } from "../config/call-config.ts";
import { blamingFields, nodeNameFor } from "../config/config-files.ts";
import { type DatastoreSettings, datastoreSettings } from "../config/datastore-settings.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { identity } from "../identity.ts";
import type { HostMeans } from "../ipam/host-allocator.ts";
import { openConfigLog } from "../log/config-log.ts";
import type { Log } from "../log/log.ts";
import type { EnterPhase } from "./phase.ts";
import type { PluginHost } from "./plugin-host.ts";

/** What the plugin needs of the process it runs in. */
export interface Surroundings extends HostMeans {
  readonly pid: number;
  readonly hostName: () => Promise<string>;
  /** Where the node agent leaves what it found out about the host. */
  readonly stateDirectory: string;
  readonly host: PluginHost;
  /** Milliseconds of a clock that never goes back. */
  readonly elapsed: () => number;
  readonly uuid: () => string;
  /** Device and inode of the file that this process runs: they are its own, whatever becomes of the file's name. */
  readonly executablePlace: () => string | undefined;
  readonly stderr: (text: string) => void;
  /** Takes what another IPAM plugin writes to stderr; absent if that plugin writes to the stderr of this process. */
  readonly delegateStderr?: ((text: string) => void) | undefined;
  readonly enterPhase: EnterPhase;
}

export interface Session {
  readonly config: NetworkConfig;
  readonly settings: DatastoreSettings;
  readonly node: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly surroundings: Surroundings;
  /** Opened once, when first asked for; closed with the session. */
  readonly store: () => Promise<Datastore>;
}

export async function withSession<T>(
  surroundings: Surroundings,
  { call, context }: { readonly call: CniCall; readonly context: CallContext },
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const { pid, stderr, host, now: clock } = surroundings;
  const decoded = networkConfigOf(call, host);
  const { config } = decoded;
  const log = openConfigLog(decoded, { component: identity.product, pid, clock, stderr });

  const settings = datastoreSettings(config);
  const { store, close } = openOnce(settings, surroundings);
  try {
    const node = await nodeNameFor(call, config, surroundings.hostName);
    return await work({ config, settings, node, log, signal: context.signal, surroundings, store });
  } catch (cause) {
    const failure = await blamingFields(cause, decoded.files);
    log.error(failure instanceof Error ? failure.message : String(failure), fieldsOf(call));
    throw failure;
  } finally {
    surroundings.enterPhase("datastore");
    await close();
    surroundings.enterPhase("exit");
    log.close();
  }
}

function openOnce(settings: DatastoreSettings, { random, host }: Surroundings) {
  let opening: Promise<Datastore> | undefined;
  const store = () => {
    opening ??= host.openDatastore(settings, { random });
    // Whoever needs it meets the failure; nobody may.
    opening.catch(() => {});
    return opening;
  };
  const close = async () => {
    await opening?.then(
      (opened) => opened.close(),
      () => {},
    );
  };
  return { store, close };
}

function fieldsOf(call: CniCall): Readonly<Record<string, string>> {
  const shared = { command: call.command, network: call.networkName };
  if (call.command === "GC" || call.command === "STATUS") return shared;
  return { ...shared, container: call.containerId, interface: call.ifname };
}

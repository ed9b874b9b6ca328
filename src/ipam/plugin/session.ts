/**
 * One call of the IPAM plugin and all it works with: config, log, node name,
 * datastore and allocator, opened in this order and closed whatever happens.
 */
import type { CniCall } from "../../cni/call.ts";
import type { CallContext } from "../../cni/serve.ts";
import { networkConfigOf } from "../../config/call-config.ts";
import { blamingFields, nodeNameFor } from "../../config/config-files.ts";
import { type DatastoreSettings, datastoreSettings } from "../../config/datastore-settings.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { openConfigLog } from "../../log/config-log.ts";
import type { Log } from "../../log/log.ts";
import type { Allocator } from "../allocator.ts";
import { type HostMeans, openHostAllocator } from "../host-allocator.ts";

/** What the plugin needs of the process it runs in. */
export interface Surroundings extends HostMeans {
  readonly pid: number;
  readonly hostName: () => Promise<string>;
  readonly uuid: () => string;
  readonly stderr: (text: string) => void;
}

export interface Session {
  readonly config: NetworkConfig;
  readonly settings: DatastoreSettings;
  readonly node: string;
  readonly store: Datastore;
  readonly allocator: Allocator;
  readonly log: Log;
}

export async function withSession<T>(
  surroundings: Surroundings,
  call: { readonly call: CniCall; readonly context: CallContext },
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const decoded = networkConfigOf(call.call, surroundings.host);
  const { config } = decoded;
  const log = openConfigLog(decoded, { component: "ipam", clock: surroundings.now, ...surroundings });
  let store: Datastore | undefined;
  try {
    const node = await nodeNameFor(call.call, config, surroundings.hostName);
    const settings = datastoreSettings(config);
    const { random, host } = surroundings;
    store = await host.openDatastore(settings, { random, signal: call.context.signal });
    const warn = (message: string) => log.warning(message);
    const allocator = openHostAllocator(store, surroundings, { node, settings, warn });
    return await work({ config, settings, node, store, allocator, log });
  } catch (cause) {
    const failure = await blamingFields(cause, decoded.files);
    log.error(failure instanceof Error ? failure.message : String(failure), { command: call.call.command });
    throw failure;
  } finally {
    await store?.close();
    log.close();
  }
}

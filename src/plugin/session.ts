/** What the network plugin works with in one call; ipam/session.ts opens and closes it. */
import type { Session as AnySession, Surroundings as AnySurroundings } from "../ipam/session.ts";
import type { PluginHost } from "./plugin-host.ts";

/** What the plugin needs of the process it runs in. */
export interface Surroundings extends AnySurroundings {
  /** Where the node agent leaves what it found out about the host. */
  readonly stateDirectory: string;
  readonly host: PluginHost;
  /** Milliseconds of a clock that never goes back. */
  readonly elapsed: () => number;
  /** Device and inode of the file that this process runs: they are its own, whatever becomes of the file's name. */
  readonly executablePlace: () => string | undefined;
  /** Takes what another IPAM plugin writes to stderr; absent if that plugin writes to the stderr of this process. */
  readonly delegateStderr?: ((text: string) => void) | undefined;
}

export type Session = AnySession<Surroundings>;

/** The session of the network plugin, for one call; ipam/session.ts opens and closes it. */
import type { Session as AnySession, Surroundings as AnySurroundings } from "../ipam/session.ts";
import type { FileFolder } from "../linux/file-folder.ts";
import type { FileWait } from "../linux/wait-for-file.ts";
import type { PluginHost } from "./plugin-host.ts";

/** What the plugin needs from the process it runs in. */
export interface Surroundings extends AnySurroundings {
  /** Where the node agent writes facts about the host, such as its MTU. */
  readonly stateDirectory: string;
  /** Of the agent's files; `undefined` if there is none. */
  readonly readText: (path: string) => string | undefined;
  readonly openFolder: (path: string) => Promise<FileFolder>;
  readonly waitForFile: (path: string, wait: FileWait) => Promise<"present" | "timed out">;
  readonly host: PluginHost;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Device and inode of this process's executable, which stay the same if the file is renamed or replaced. */
  readonly executablePlace: () => string | undefined;
  /** Receives what another IPAM plugin writes to stderr; absent if that plugin writes to the stderr of this process. */
  readonly delegateStderr?: ((text: string) => void) | undefined;
}

export type Session = AnySession<Surroundings>;

/**
 * What an installation of this release may have written at its known paths, for a node whose record of it is damaged.
 * Files that the release writes with one content only are removed if they have that content: the names of some programs
 * may belong to other plugins. Pure.
 */

import {
  AGENT_NETWORK_LIST,
  etcdFilesDirectory,
  type InstalledEntry,
  kubeconfigPath,
  networkListEntry,
  networkListPath,
  programEntries,
  secretEntry,
} from "./layout.ts";
import { UNMANAGED_LINKS_DIRECTORIES, unmanagedLinkEntries } from "./unmanaged-links.ts";

export interface KnownPlaces {
  readonly binDirectory: string;
  readonly configDirectory: string;
  /** Names of the credentials for etcd. */
  readonly etcdFiles: readonly string[];
  readonly programs: { readonly executable: string; readonly names: readonly string[] };
}

export function knownEntries({ binDirectory, configDirectory, etcdFiles, programs }: KnownPlaces) {
  const directories = [true, false].map((managesCni) => etcdFilesDirectory(configDirectory, managesCni));
  const secrets = directories.flatMap((directory) => etcdFiles.map((name) => `${directory}/${name}`));
  const entries: readonly InstalledEntry[] = [
    ...unmanagedLinkEntries(UNMANAGED_LINKS_DIRECTORIES),
    ...programEntries(binDirectory, programs),
    ...[...secrets, kubeconfigPath(configDirectory)].map((path) => secretEntry(path, "")),
    networkListEntry(AGENT_NETWORK_LIST, ""),
    networkListEntry(networkListPath(configDirectory), ""),
  ];
  return entries;
}

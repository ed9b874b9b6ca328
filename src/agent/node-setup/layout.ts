/**
 * What an installation on a node consists of, in the order in which it is written. A container runtime uses the network
 * as soon as it finds the network config, so that is last; uninstalling goes the other way. Pure.
 *
 *   unmanaged links     tell other programs that manage links to leave ours alone
 *   vendor              the executable, once; then its other names, links to it
 *   vendor-tls/         credentials for etcd
 *   vendor-kubeconfig   the plugin's access to the orchestrator's API
 *   10-vendor.conflist
 */
import { identity } from "../../identity.ts";
import type { Placed } from "../../linux/place-file.ts";

/**
 * "if unchanged": what somebody else has written since is left. "always": the content changes with time.
 * "keep a copy": it would break the node if it were left, but a person may have changed it.
 */
export type Removal = "if unchanged" | "always" | "keep a copy";

export interface InstalledEntry {
  readonly path: string;
  readonly placed: Placed;
  readonly removal: Removal;
}

const EXECUTABLE_MODE = 0o755;
const SECRET_MODE = 0o600;
const READABLE_MODE = 0o644;

const { product, stateDirectory } = identity;

/** Without our plugin, the agent uses the network config here. */
export const AGENT_NETWORK_LIST = `${stateDirectory}/agent.conflist`;

export function kubeconfigPath(configDirectory: string): string {
  return `${configDirectory}/${product}-kubeconfig`;
}

export function networkListPath(configDirectory: string): string {
  return `${configDirectory}/10-${product}.conflist`;
}

/** The directory of the credentials for etcd. */
export function etcdFilesDirectory(configDirectory: string, managesCni: boolean): string {
  return managesCni ? `${configDirectory}/${product}-tls` : `${stateDirectory}/tls`;
}

export function programEntries(
  binDirectory: string,
  { executable, names }: { readonly executable: string; readonly names: readonly string[] },
): readonly InstalledEntry[] {
  const others = names.filter((name) => name !== product);
  return [
    {
      path: `${binDirectory}/${product}`,
      placed: { kind: "copy", of: executable, mode: EXECUTABLE_MODE },
      removal: "if unchanged",
    },
    ...others.map((name) => ({
      path: `${binDirectory}/${name}`,
      placed: { kind: "link" as const, target: product },
      removal: "if unchanged" as const,
    })),
  ];
}

export function secretEntry(path: string, text: string): InstalledEntry {
  return { path, placed: { kind: "text", text, mode: SECRET_MODE }, removal: "always" };
}

/** Only root reads network configs, and benchmarks of secure clusters demand this mode. */
export function networkListEntry(path: string, text: string): InstalledEntry {
  return { path, placed: { kind: "text", text, mode: SECRET_MODE }, removal: "keep a copy" };
}

export function readableEntry(path: string, text: string): InstalledEntry {
  return { path, placed: { kind: "text", text, mode: READABLE_MODE }, removal: "if unchanged" };
}

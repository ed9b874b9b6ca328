/** What the installed network config tells the agent: the datastore, the name of this node, and what is switched on. */
import { readdir, readFile } from "node:fs/promises";
import type { Environment } from "../../cni/environment.ts";
import { DEFAULT_NODE_NAME_FILE, readNodeName } from "../../config/config-files.ts";
import { type DatastoreSettings, datastoreSettings } from "../../config/datastore-settings.ts";
import { findInstalledNetwork, isForAgentOnly, type NetworkFiles } from "../../config/installed-network.ts";
import { type KubeAccess, kubeAccess } from "../../config/kube-access.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Family } from "../../ip/address.ts";
import { type Prefix, parsePrefix } from "../../ip/prefix.ts";
import { podCidrPlaces } from "../../ipam/hostlocal/pod-cidr.ts";
import { hostName } from "../../linux/host-name.ts";

export interface AgentNetwork {
  readonly name: string;
  readonly settings: DatastoreSettings;
  readonly node: string;
  /** Where plugins look for the name. */
  readonly nodeNameFile: string;
  /** With `policy.type`: there must be a policy table, even if there is no policy. */
  readonly isPolicyRequired: boolean;
  readonly features: NetworkConfig["features"];
  /** Another plugin connects the pods of this host. */
  readonly isForAgentOnly: boolean;
  /** What pods may send from beside their own addresses; `undefined` if the config does not allow it. */
  readonly furtherSources: { readonly permittedInCluster: readonly Prefix[] } | undefined;
  /** Where the plugin looks for the status of endpoints. */
  readonly statusDirectory: string;
  readonly orchestrator: {
    /** `undefined` if the config does not give access to its API. */
    readonly access: KubeAccess | undefined;
    /** Of the agent itself, whatever the config says; `undefined` if there is none. */
    readonly agentAccess: KubeAccess | undefined;
    /** Of this host, if the config names it. */
    readonly nodeName: string | undefined;
    /** The families of ranges that pods get from the orchestrator's Node: host-local with `usePodCidr`. */
    readonly podCidrFamilies: readonly Family[];
  };
}

/** Where the network config is found, and the name of the host. */
interface HostFiles extends NetworkFiles {
  hostName(): Promise<string>;
}

export function ownNetworkFiles(environment: Environment): HostFiles {
  return {
    listFolder: async (path) => (await readdir(path)).sort(),
    readFile: (path) => readFile(path, "utf8"),
    env: environment,
    hostName,
  };
}

/**
 * `undefined` if no network is installed. Throws if the plugin would refuse its config. `account`: a kubeconfig, which
 * replaces that of the plugin.
 */
export async function readAgentNetwork(
  stderr: (text: string) => void,
  account: string | undefined,
  files: HostFiles,
): Promise<AgentNetwork | undefined> {
  const installed = await findInstalledNetwork(files);
  if (installed === undefined) return undefined;
  for (const problem of installed.skipped) stderr(problem);
  const { config } = installed.decoded;
  const settings = datastoreSettings(config);
  const given = kubeAccess(config);
  const ownAccess = account === undefined ? undefined : { kubeconfigs: [account] };
  return {
    name: config.name,
    settings:
      settings.kind === "orchestrator" && ownAccess !== undefined ? { ...settings, access: ownAccess } : settings,
    // The agent writes the file if there is none yet.
    node: await readNodeName({ node: { ...config.node, nameFileOptional: true } }, files.hostName),
    nodeNameFile: config.node.nameFile ?? DEFAULT_NODE_NAME_FILE,
    features: config.features,
    isPolicyRequired: installed.isPolicyRequired,
    isForAgentOnly: isForAgentOnly(installed),
    furtherSources: config.features.allowedSourcePrefixes
      ? { permittedInCluster: config.clusterSourcePrefixes.flatMap((text) => parsePrefix(text) ?? []) }
      : undefined,
    statusDirectory: config.endpointStatusDirectory,
    orchestrator: {
      // Beside another plugin the config need not name credentials: no plugin uses them.
      access: given || isForAgentOnly(installed) ? (ownAccess ?? given) : undefined,
      agentAccess: ownAccess ?? given,
      nodeName: config.kubernetes.nodeName,
      podCidrFamilies: podCidrFamilies(config.ipam),
    },
  };
}

const HOST_LOCAL = "host-local";

function podCidrFamilies({ type, asGiven }: NetworkConfig["ipam"]): readonly Family[] {
  if (type !== HOST_LOCAL) return [];
  return [...new Set(podCidrPlaces({ ipam: asGiven }).map(({ family }) => family))];
}

/** Reads what `ipam explain` needs: endpoint, pod, network config, pools, node and blocks. */

import type { DatastoreSettings } from "../../../config/datastore-settings.ts";
import { decodeNetworkConfig } from "../../../config/decode.ts";
import type { InstalledNetwork } from "../../../config/installed-network.ts";
import { type KubeAccess, kubeAccess } from "../../../config/kube-access.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { readEach, type Unreadable } from "../../../datastore/read-each.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { type Address, parseAddress } from "../../../ip/address.ts";
import { formatPrefix, parseInterfaceAddress } from "../../../ip/prefix.ts";
import { type AddressList, decodeAddressList, decodeNode } from "../../../ipam/records.ts";
import { wantedAddressList } from "../../../ipam/view.ts";
import { annotationsOfNamespace, labelsOfNamespace, namespaceWarning, readPodAndNamespace } from "../../../kube/pod.ts";
import { NETWORK_ANNOTATION } from "../../../model/endpoint-labels.ts";
import { affineNode } from "../../../model/ipam-block.ts";
import { resourceKey } from "../../../model/keys.ts";
import { NODE_AGENT_CONFIGURATION } from "../../../model/kinds.ts";
import { isResourceName } from "../../../model/metadata.ts";
import { nodeAgentSettings } from "../../../model/node-agent-configuration.ts";
import { type PodObject, textOf, textsIn } from "../../../model/pod-endpoint.ts";
import { mostRecordedValues } from "../../../model/recorded-annotations.ts";
import type { WorkloadEndpoint } from "../../../model/workload-endpoint.ts";
import { type AnnotatedPod, annotationKey } from "../../../plugin/annotations.ts";
import { quoted } from "../../../quote.ts";
import type { Call, Cluster } from "../../main/context.ts";
import { allocationAt, blocksOf } from "../address-blocks.ts";
import { isAllocatedTo } from "../endpoint-owner.ts";
import { findPools } from "../pools.ts";
import type { ExplainFacts, FoundAddress } from "./report.ts";
import { describeSubject, findEndpoints, type Subject } from "./subject.ts";

export interface GatheredFacts {
  readonly facts: ExplainFacts;
  readonly endpoints: readonly WorkloadEndpoint[];
  /** What could not be known, and what that means. */
  readonly notes: readonly string[];
  readonly unreadable: readonly Unreadable[];
}

export interface Sources {
  readonly store: Datastore;
  readonly settings: DatastoreSettings;
  readonly network: InstalledNetwork | undefined;
  readonly context: Call & Cluster;
}

export async function gatherFacts(subject: Subject, sources: Sources): Promise<GatheredFacts> {
  const { store, network, settings } = sources;
  const endpoints = await findEndpoints(store, subject);
  const found: FoundPod = subject.kind === "pod" ? await readPod(subject, sources) : { notes: [] };
  const [endpoint] = endpoints.readable;
  if (endpoint === undefined && found.object === undefined) {
    throw new PluginError(
      "resource-missing",
      `Cannot explain ${describeSubject(subject)}: it has no endpoint in the datastore`,
      {
        details: "an endpoint exists while the workload is attached to the network",
      },
    );
  }
  const pools = await findPools(store);
  const node = endpoint?.spec.node ?? textOf(found.object?.spec ?? {}, "nodeName");
  const labels = node === undefined ? undefined : await labelsOf(store, node);
  const { config, configName, notes } = configOf(network);
  const configurations = readEach(await readAllEntries(store, NODE_AGENT_CONFIGURATION.prefix()), ({ key, value }) =>
    NODE_AGENT_CONFIGURATION.codec.read(value, key),
  );
  const list = found.pod && (await listOf(store, found.pod));
  const addresses = await Promise.all(endpoints.readable.map((each) => addressesOf(store, each)));
  return {
    facts: {
      ...(found.pod === undefined ? {} : { pod: found.pod }),
      ...(list === undefined ? {} : { list }),
      ...(subject.kind === "pod" ? { namespace: namespaceOf(subject, found) } : {}),
      config,
      configName,
      pools: pools.readable,
      node: node ?? "",
      labels: labels ?? {},
      addresses: addresses.flat(),
      floating: endpoints.readable.flatMap(floatingOf),
      mostRecordedValues: mostRecordedValues(settings.kind),
      ...settingsOf(nodeAgentSettings(configurations.readable, node ?? "")),
    },
    endpoints: endpoints.readable,
    notes: [...found.notes, ...notes, ...networkNotes(endpoint, network), ...nodeNotes(node, labels)],
    unreadable: [...endpoints.unreadable, ...pools.unreadable, ...configurations.unreadable],
  };
}

function settingsOf({ bgp, routing }: Pick<ExplainFacts, "bgp" | "routing">): Pick<ExplainFacts, "bgp" | "routing"> {
  return { bgp, routing };
}

interface FoundPod {
  readonly object?: PodObject;
  readonly pod?: AnnotatedPod;
  readonly namespaceLabels?: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
}

function namespaceOf({ namespace: name }: { readonly namespace: string }, { namespaceLabels: labels }: FoundPod) {
  return labels === undefined ? { name } : { name, labels };
}

async function readPod(subject: Extract<Subject, { kind: "pod" }>, sources: Sources): Promise<FoundPod> {
  const access = accessOf(sources);
  if (access === undefined) {
    return { notes: ["No access to the Kubernetes API is configured: annotations are not taken into account"] };
  }
  const { context } = sources;
  const client = await context.openKubeClient(access);
  const [pod, namespace] = await readPodAndNamespace(subject, client, context.signal).finally(() => client.close());
  if (pod === undefined) {
    return {
      notes: [`The Kubernetes API has no ${describeSubject(subject)}: annotations are not taken into account`],
    };
  }
  const annotations = textsIn(pod.metadata, "annotations");
  const namespaceAnnotations = namespace === undefined ? {} : annotationsOfNamespace(namespace);
  const warning = namespace && namespaceWarning(namespace);
  const { namespace: place, name } = subject;
  const labels = namespace && labelsOfNamespace(namespace);
  return {
    object: pod,
    ...(labels === undefined ? {} : { namespaceLabels: labels }),
    pod: { namespace: place, name, annotations, namespaceAnnotations },
    notes: warning === undefined ? [] : [warning],
  };
}

/** The plugin's own access, and if there is no network config here, that of kubectl. */
function accessOf({ settings, network, context }: Sources): KubeAccess | undefined {
  if (settings.kind === "orchestrator") return settings.access;
  const configured = network && kubeAccess(network.decoded.config);
  if (configured !== undefined) return configured;
  const files = (context.env["KUBECONFIG"] ?? "").split(":").filter((file) => file !== "");
  return files.length === 0 ? undefined : { kubeconfigs: files };
}

function configOf(network: InstalledNetwork | undefined) {
  if (network !== undefined) {
    return { config: network.decoded.config, configName: `network config "${network.file}"`, notes: [] };
  }
  const decoded = decodeNetworkConfig({
    name: "default",
    cniVersion: "1.0.0",
    type: identity.product,
    ipam: { type: identity.ipamType },
  });
  if (!decoded.ok) throw new PluginError("internal", "Cannot decode the smallest network config");
  return {
    // Whether the features are switched on is unknown, too: a refusal would be a guess.
    config: { ...decoded.config, features: { ipAddrsNoIpam: true, floatingIps: true, allowedSourcePrefixes: true } },
    configName: "the network config",
    notes: [
      "There is no network config on this host: its pools and switches are not taken into account; name it with --network-config",
    ],
  };
}

/** A pod may be attached to several networks, and the config of another one says nothing about its addresses. */
function networkNotes(
  endpoint: WorkloadEndpoint | undefined,
  network: InstalledNetwork | undefined,
): readonly string[] {
  const [own, other] = [endpoint?.metadata.annotations?.[NETWORK_ANNOTATION], network?.decoded.config.name];
  if (own === undefined || other === undefined || own === other) return [];
  return [`The workload is attached to network ${quoted(own)}, but the network config is that of ${quoted(other)}`];
}

async function labelsOf(store: Datastore, node: string): Promise<Readonly<Record<string, string>> | undefined> {
  const { answers } = await store.read([{ kind: "key", key: resourceKey("nodes", { name: node }) }]);
  const [entry] = answers.flat();
  return entry && decodeNode(entry).labels;
}

/** The list of addresses that the pod names, if it exists. */
async function listOf(store: Datastore, { annotations }: AnnotatedPod): Promise<AddressList | undefined> {
  const name = annotations[annotationKey("ipAddrsFrom")];
  if (name === undefined || !isResourceName(name)) return undefined;
  const { answers } = await store.read([wantedAddressList(name)]);
  const [entry] = answers.flat();
  return entry && decodeAddressList(entry);
}

function nodeNotes(node: string | undefined, labels: Readonly<Record<string, string>> | undefined): readonly string[] {
  if (node === undefined)
    return ["The workload is not assigned to a node: node selectors are evaluated without labels"];
  if (labels !== undefined) return [];
  return [`Node ${quoted(node)} is not registered: node selectors are evaluated without labels`];
}

function floatingOf({ spec }: WorkloadEndpoint): readonly Address[] {
  return (spec.ipNATs ?? []).flatMap(({ externalIP }) => parseAddress(externalIP) ?? []);
}

async function addressesOf(store: Datastore, endpoint: WorkloadEndpoint): Promise<readonly FoundAddress[]> {
  const { ipNetworks = [], endpoint: ifname } = endpoint.spec;
  const addresses = ipNetworks.flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
  return Promise.all(
    addresses.map(async (address): Promise<FoundAddress> => {
      const { readable } = await blocksOf(store, address);
      const block = readable.find((each) => allocationAt(each, address));
      const allocation = block && allocationAt(block, address);
      const place = { address, ...(ifname === undefined ? {} : { interface: ifname }) };
      if (block === undefined || allocation === undefined || !isAllocatedTo(endpoint, allocation)) {
        const around = readable.find((each) => affineNode(each) === endpoint.spec.node);
        return { ...place, ...(around === undefined ? {} : { insideBlock: formatPrefix(around.cidr) }) };
      }
      const { handle, secondary } = allocation;
      const [blockOf, since] = [affineNode(block), secondary["timestamp"]];
      return {
        ...place,
        allocation: {
          block: formatPrefix(block.cidr),
          ...(blockOf === undefined ? {} : { blockOf }),
          ...(handle === undefined ? {} : { handle }),
          ...(since === undefined ? {} : { since }),
        },
      };
    }),
  );
}

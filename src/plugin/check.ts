/**
 * CHECK: whether everything that ADD made is still there. All of it is compared,
 * and every difference is reported in one error.
 */
import { decodeArguments } from "../cni/arguments.ts";
import type { CheckCall } from "../cni/call.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { formatMac, parseMac } from "../ip/mac.ts";
import { formatPrefix, singlePrefix } from "../ip/prefix.ts";
import { heldRequest } from "../ipam/attachment.ts";
import type { Link } from "../linux/rtnetlink/link.ts";
import { ALLOWED_SOURCES_GROUP } from "../linux/rtnetlink/own-devices.ts";
import { quoted } from "../quote.ts";
import { expectedWiring } from "./expected-wiring.ts";
import { keptUseOf } from "./kept-identity.ts";
import { loadDelegation } from "./load-delegation.ts";
import { requestedMac } from "./requested-mac.ts";
import { resultMac } from "./result-mac.ts";
import { closeSandbox, openSandbox } from "./sandbox.ts";
import type { Session } from "./session.ts";
import { readStoredEndpoint, type StoredEndpoint } from "./stored-endpoint.ts";
import { wiringDifferences } from "./wiring-check.ts";
import type { WiringPlan } from "./wiring-plan.ts";
import { readWiring } from "./wiring-state.ts";
import { type Workload, workloadOf } from "./workload.ts";

export async function check(call: CheckCall, session: Session): Promise<void> {
  const { prevResult, netns } = call;
  if (prevResult === undefined) {
    throw new PluginError("config-invalid", 'Cannot check: "prevResult" is missing from the network config');
  }
  void session.store();
  const args = decodeArguments(call.args);
  const resulting = resultMac(prevResult, call.ifname);
  const unrequested = workloadOf(call, args, session.node, resulting);
  const endpoint = await readEndpoint(unrequested, session);
  const requested = macOfAnnotation(endpoint) ?? requestedMac(call.config, args);
  const workload = requested === undefined ? unrequested : { ...unrequested, mac: requested };
  const { queueCount: queues, allowIpForwarding } = session.config;
  const { plan, addresses, differences } = expectedWiring(workload, prevResult, {
    netns,
    queues,
    allowIpForwarding,
    sourcePrefixes: endpoint?.sourcePrefixes ?? [],
  });
  const reserved = addresses.filter((address) => !endpoint?.withoutIpam.has(formatAddress(address)));
  const all = [
    ...differences,
    ...(await kernelDifferences(netns, plan, session)),
    ...endpointDifferences({ workload, addresses }, endpoint, session),
    ...(await reservationDifferences(call, { workload, addresses: reserved }, session)),
  ];
  if (all.length === 0) return;
  throw new PluginError("check-failed", `Cannot confirm the container's network: ${all.join("; ")}`);
}

async function kernelDifferences(netns: string, plan: WiringPlan, session: Session): Promise<readonly string[]> {
  const sandbox = openSandbox(session.surroundings.host.kernel, netns);
  try {
    const state = readWiring(plan, sandbox);
    return [...wiringDifferences(plan, state), ...(await sourceDifferences(plan, state.host.link, session))];
  } finally {
    closeSandbox(sandbox);
  }
}

/** Read only if the container may use other sources than its addresses. While their switch is off, it may not, whatever the endpoint records. */
async function sourceDifferences(
  { host: { name, sourcePrefixes } }: WiringPlan,
  link: Link | undefined,
  { surroundings, config }: Session,
): Promise<readonly string[]> {
  const prefixes = config.features.allowedSourcePrefixes ? sourcePrefixes : [];
  if (link === undefined || (prefixes.length === 0 && link.group !== ALLOWED_SOURCES_GROUP)) return [];
  const { sourceDifferences: differences } = await import("./further-sources.ts");
  return differences(surroundings.host.netfilter, { linkName: name, linkIndex: link.index, prefixes });
}

async function readEndpoint({ endpointKey }: Workload, session: Session): Promise<StoredEndpoint | undefined> {
  const { answers } = await (await session.store()).read([{ kind: "key", key: endpointKey }]);
  const entry = answers[0]?.[0];
  return entry && readStoredEndpoint(entry);
}

/** It takes precedence over what the runtime requests. */
function macOfAnnotation(endpoint: StoredEndpoint | undefined): Uint8Array | undefined {
  return endpoint?.annotatedMac === undefined ? undefined : parseMac(endpoint.annotatedMac);
}

function endpointDifferences(
  { workload, addresses }: { readonly workload: Workload; readonly addresses: readonly Address[] },
  endpoint: StoredEndpoint | undefined,
  session: Session,
): readonly string[] {
  const place = `endpoint "${workload.endpointName}"`;
  if (endpoint === undefined) return [`${place} is missing`];
  if (endpoint.containerId !== workload.containerId) return [`${place} belongs to ${quoted(endpoint.containerId)}`];
  const fields: readonly (readonly [name: string, stored: string | undefined, wanted: string])[] = [
    ["node", endpoint.node, workload.node],
    ["interface", endpoint.interfaceName, workload.hostInterface],
    // A pod of the orchestrator's API does not record it.
    ...(session.settings.kind === "orchestrator" ? [] : [["MAC", endpoint.mac, formatMac(workload.mac)] as const]),
  ];
  const wantedNetworks = addresses.map((address) => formatPrefix(singlePrefix(address)));
  return [
    ...fields
      .filter(([, stored, wanted]) => stored !== wanted)
      .map(([name, stored, wanted]) => `${place} has ${name} "${stored ?? ""}" instead of "${wanted}"`),
    ...wantedNetworks
      .filter((text) => !endpoint.ipNetworks.includes(text))
      .map((text) => `${place} does not contain address ${text}`),
  ];
}

async function reservationDifferences(
  call: CheckCall,
  { workload, addresses }: { readonly workload: Workload; readonly addresses: readonly Address[] },
  session: Session,
): Promise<readonly string[]> {
  if (session.config.ipam.type !== identity.ipamType) {
    const { ipamOf } = await loadDelegation();
    await (await ipamOf(session, call)).check(call, session.signal);
    return [];
  }
  const wanted = addresses.map(formatAddress);
  const kept = keptUseOf(workload, { results: wanted, hadLink: true });
  const held = await (await session.allocator()).held({ ...heldRequest(workload, wanted), kept });
  const names = held.map(({ address }) => formatAddress(address));
  return wanted
    .filter((address) => !names.includes(address))
    .map((address) => `address ${address} is not reserved for the container`);
}

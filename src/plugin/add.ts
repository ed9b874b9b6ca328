/**
 * ADD: the steps of an attachment, each in a file of its own.
 *
 *   call -> workload -> existing links? -> readiness -> addresses + endpoint -> host firewall -> wiring -> result
 *
 * A failure at any step undoes what this call did, last step first. If an earlier
 * ADD of the same attachment made the links, nothing is undone: they are in use.
 */
import { decodeArguments, refuseTwoRequests } from "../cni/arguments.ts";
import type { AddCall } from "../cni/call.ts";
import type { CniResult } from "../cni/result.ts";
import { kubeAccess } from "../config/kube-access.ts";
import { prepareHost } from "../firewall/prepare-host.ts";
import { trackedConnections } from "../firewall/tracked-connections.ts";
import { formatAddress } from "../ip/address.ts";
import { type RequestedAddress, requestedAddresses } from "../ipam/requested-addresses.ts";
import { type AddRequest, NO_POD_FACTS } from "./add-request.ts";
import type { FurtherSources } from "./further-sources.ts";
import { forgetLabels, recallLabels } from "./kept-labels.ts";
import { loadPolicyTableCheck, loadPolicyWait } from "./load-policy-setup.ts";
import { chooseMtu } from "./mtu.ts";
import type { PluginHost } from "./plugin-host.ts";
import type { PodFacts } from "./pod-facts.ts";
import { awaitReadiness } from "./readiness-gates.ts";
import { forgetOnHost, recordOnHost } from "./record-on-host.ts";
import { registerAttachment } from "./register-attachment.ts";
import { removeOwnLink } from "./remove-links.ts";
import { requestedMac } from "./requested-mac.ts";
import { chooseDns, resultOf } from "./result.ts";
import { chooseRoutes, wantedRoute } from "./routes.ts";
import {
  closeSandbox,
  type Found,
  findExisting,
  findHostLink,
  openSandbox,
  requireContainer,
  type Sandbox,
} from "./sandbox.ts";
import type { Session } from "./session.ts";
import { UndoList } from "./undo-list.ts";
import { refuseAddressesOfHostLocal, refuseUnsupportedRequests, unusedArguments } from "./unsupported-requests.ts";
import { createLinks, linksOf, wireLinks } from "./wire.ts";
import { planWiring } from "./wiring-plan.ts";
import {
  podFields,
  requireAccessFor,
  requirePodFor,
  requirePodIn,
  requireUsableNames,
  type Workload,
  workloadOf,
} from "./workload.ts";

export async function add(call: AddCall, session: Session): Promise<CniResult> {
  const { enterPhase } = session.surroundings;
  // Errors in the call itself are reported before the namespace is opened.
  const args = decodeArguments(call.args);
  refuseTwoRequests(call.args);
  refuseUnsupportedRequests(call.config, session.config.ipam.type);
  for (const message of unusedArguments(call.config)) session.log.warning(message);
  const requested = requestedAddresses({ config: call.config, args });
  refuseAddressesOfHostLocal(requested, session.config.ipam.type);
  const workload = workloadOf(call, args, session.node, requestedMac(call.config, args));
  requireUsableNames(workload);
  requirePodFor(session.config.features, workload);
  requirePodIn(session.settings, workload);
  requireAccessFor(session.config, workload);
  session.note(podFields(workload));
  // Opens while the kernel is queried.
  enterPhase("datastore");
  void session.store();
  const facts = readFacts(args.podUid, workload, session);
  // Reported when the facts are used; an earlier failure of the call has precedence.
  facts.catch(() => {});
  enterPhase("kernel");
  const sandbox = openSandbox(session.surroundings.host.kernel, call.netns);
  const undo = new UndoList();
  try {
    const before = findHostLink(sandbox, workload);
    const podFacts = await facts;
    reportOverridden(requested, podFacts, session);
    const recalled = recallLabels(workload, call.netns, session);
    const annotated = { ...withMac(workload, podFacts), ...recalled };
    const found = findExisting(sandbox, annotated, before);
    const request = { call, args, requested, podFacts, workload: annotated, found };
    const result = await attach(request, session, { sandbox, undo });
    if (recalled !== undefined) await forgetLabels(workload, session);
    return result;
  } catch (failure) {
    for (const trouble of await undo.run()) session.log.error(trouble, { container: call.containerId });
    throw failure;
  } finally {
    closeSandbox(sandbox);
  }
}

/** Nothing is read if the call has no pod, or if the config gives no access to the orchestrator's API. */
async function readFacts(uid: string | undefined, { namespace, pod }: Workload, session: Session): Promise<PodFacts> {
  const access = kubeAccess(session.config);
  if (access === undefined || pod === undefined) return NO_POD_FACTS;
  const { readPodFacts } = await import("./pod-facts.ts");
  return readPodFacts({ namespace, name: pod, uid }, access, session);
}

/** A MAC in an annotation takes precedence over the runtime's. */
function withMac(workload: Workload, { requests: { mac } }: PodFacts): Workload {
  return mac === undefined ? workload : { ...workload, mac: mac.value };
}

function reportOverridden(requested: readonly RequestedAddress[], { requests }: PodFacts, { log }: Session): void {
  const { families } = requests;
  for (const { address, place } of requested) {
    const isOtherFamily = families !== undefined && !families.value.includes(address.family);
    const instead = requests.addresses ?? requests.addressesWithoutIpam ?? requests.list;
    const winner = instead ?? (isOtherFamily ? families : undefined);
    if (winner === undefined) continue;
    log.warning(`"${formatAddress(address)}" (${place}) has no effect: ${winner.place} takes precedence`);
  }
}

async function attach(
  request: Omit<AddRequest, "requireContainer">,
  session: Session,
  { sandbox, undo }: { readonly sandbox: Sandbox; readonly undo: UndoList },
): Promise<CniResult> {
  const { call, podFacts, workload, found } = request;
  const { config, surroundings, signal, log } = session;
  const mtu = chooseMtu(config.mtu, surroundings);
  const warn = (message: string) => log.warning(message);
  const { netfilter, isNatFollowed } = surroundings.host;
  const further = await furtherSourcesOf(podFacts, found, { host: surroundings.host, warn });
  if (config.readinessGates.length > 0) await awaitReadiness(config.readinessGates, { ...surroundings, signal });
  if (config.policyType !== undefined) await (await loadPolicyTableCheck()).requirePolicyTable(netfilter);
  surroundings.enterPhase("datastore");

  const registered = await registerAttachment(
    { ...request, requireContainer: () => requireContainer(sandbox) },
    session,
  );
  if (found.kind === "nothing") {
    undo.add("release the addresses and remove the endpoint", registered.undo);
    undo.add("forget tracked connections", async () =>
      (await trackedConnections(netfilter, warn))?.forget(registered.addresses),
    );
    undo.add("remove the record on the host", () => forgetOnHost(workload, session));
  }
  signal.throwIfAborted();
  await recordOnHost(workload, { podFacts, addresses: registered.addresses }, session);

  surroundings.enterPhase("kernel");
  const { addresses, pools } = registered;
  await prepareHost(netfilter, { addresses, pools: isNatFollowed() ? undefined : pools, warn });
  const { includeDefaultRoutes, queueCount: queues, allowIpForwarding } = config;
  const routes = chooseRoutes({ addresses, given: registered.routes, includeDefaultRoutes });
  const plan = planWiring({
    ...workload,
    addresses,
    routes: routes.map(wantedRoute),
    mtu,
    queues,
    allowIpForwarding,
    sourcePrefixes: podFacts.requests.sourcePrefixes?.value ?? [],
  });
  if (further !== undefined && found.kind === "nothing") {
    undo.add("remove the allowed sources", () => further.forget());
  }
  if (found.kind === "nothing") undo.add("remove the links", () => removeOwnLink(sandbox.host, workload));
  requireContainer(sandbox);
  const made = createLinks(plan, sandbox, found);
  if (further !== undefined) {
    const { host } = made ?? linksOf(plan, sandbox);
    await further.allow({
      linkIndex: host.index,
      linkName: host.name,
      prefixes: plan.host.sourcePrefixes,
    });
  }
  const wired = wireLinks(plan, sandbox, { made, found, warn });
  if (config.policySetupTimeoutSeconds > 0) await (await loadPolicyWait()).awaitPolicySetup(workload, session);
  await surroundings.host.noticeLostCaller();
  signal.throwIfAborted();

  const dns = chooseDns(call.config, registered.dns);
  return resultOf({ ...wired, netns: call.netns, addresses, routes, dns });
}

/** Loaded only if the pod may use other sources than its addresses, or might until now. */
async function furtherSourcesOf(
  { requests: { sourcePrefixes } }: PodFacts,
  found: Found,
  { host, warn }: { readonly host: PluginHost; readonly warn: (message: string) => void },
): Promise<FurtherSources | undefined> {
  if (sourcePrefixes === undefined && !(found.kind === "own-links" && found.allowsSources)) return undefined;
  const { furtherSources } = await import("./further-sources.ts");
  return furtherSources(sourcePrefixes, host, warn);
}

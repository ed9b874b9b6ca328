/** STATUS: whether an ADD could succeed now, and if not, why. */
import type { StatusCall } from "../cni/call.ts";
import { policyAccessProblem } from "../config/kube-access.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { ForeignError, PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { DatastoreLocked } from "../ipam/cluster.ts";
import { status as ipamStatus } from "../ipam/plugin/status.ts";
import { loadDelegation } from "./load-delegation.ts";
import { loadPolicyTableCheck } from "./load-policy-setup.ts";
import { requireUsable } from "./registration.ts";
import type { Session } from "./session.ts";

export async function status(call: StatusCall, session: Session): Promise<void> {
  try {
    const { config, surroundings } = session;
    requireAccessForPods(config);
    if (config.policyType !== undefined) {
      await (await loadPolicyTableCheck()).requirePolicyTable(surroundings.host.netfilter);
    }
    if (session.config.ipam.type === identity.ipamType) {
      await ipamStatus(session);
      return;
    }
    await requireUsable(session);
    const { ipamOf } = await loadDelegation();
    await (await ipamOf(session, call)).status(call, session.signal);
  } catch (failure) {
    // The node stays in service: see the IPAM plugin.
    if (failure instanceof DatastoreLocked) return;
    throw notAvailable(failure);
  }
}

/** On the embedded datastore the containers of one host have no pods. */
function requireAccessForPods(config: NetworkConfig): void {
  const problem = config.datastoreType === "embedded" ? undefined : policyAccessProblem(config);
  if (problem !== undefined) throw new PluginError("not-available", `Cannot attach pods: ${problem.message}`);
}

/** Errors of another plugin are passed on unchanged. */
function notAvailable(failure: unknown): unknown {
  if (failure instanceof ForeignError || !(failure instanceof PluginError) || isStatusKind(failure)) return failure;
  return new PluginError("not-available", failure.message, { details: failure.details, cause: failure });
}

function isStatusKind({ kind }: PluginError): boolean {
  return kind === "not-available" || kind === "not-available-limited";
}

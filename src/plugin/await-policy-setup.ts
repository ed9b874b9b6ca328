/**
 * The end of ADD with `policy_setup_timeout_seconds`: waits until the node agent says that the rules of the new pod are
 * in the kernel. Loaded only if the config has it.
 */
import { hasPolicyTable } from "../firewall/policy-table.ts";
import { isStatusOf, statusFileName } from "../model/endpoint-status.ts";
import type { Session } from "./session.ts";
import type { Workload } from "./workload.ts";

/** After the time-out the pod starts anyway: until its rules are set, nothing reaches it, and it reaches nothing. */
export async function awaitPolicySetup(
  workload: Workload,
  { config, surroundings, signal, log }: Session,
): Promise<void> {
  const { policyType, policySetupTimeoutSeconds: seconds, endpointStatusDirectory: directory } = config;
  // Without a table there are no rules to wait for.
  if (policyType === undefined && !(await hasPolicyTable(surroundings.host.netfilter))) return;
  const { orchestrator, namespace, pod, containerId, ifname: endpoint } = workload;
  const file = `${directory}/${statusFileName({ orchestrator, namespace, pod, containerId, endpoint })}`;
  const outcome = await surroundings.waitForFile(file, {
    limitMilliseconds: seconds * 1_000,
    isWanted: (text) => isStatusOf(text, containerId),
    signal,
  });
  if (outcome === "present") return;
  const state = `not set within ${seconds} s ("policy_setup_timeout_seconds")`;
  log.warning(`The network policy of the container was ${state}: it starts without network until it is`, {
    container: containerId,
    file,
  });
}

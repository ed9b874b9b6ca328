/** Enforces the policies and floating IPs of one datastore on this host until the signal is aborted. Loaded only if a network is installed. */
import { followFloating } from "../agent/floating/follow-floating.ts";
import { openKernelTable } from "../agent/policy/kernel-table.ts";
import { runPolicyLoop } from "../agent/policy/policy-loop.ts";
import { TableKeeper } from "../agent/policy/table-keeper.ts";
import { openDatastore } from "../datastore/open.ts";
import { startReplica } from "../datastore/replica.ts";
import { applyFloating } from "../firewall/apply-floating.ts";
import type { FloatingAddress } from "../firewall/floating-addresses.ts";
import { shareNetfilter } from "../linux/shared-netfilter.ts";
import { PolicyCompiler } from "../policy/compile/compiler.ts";
import { POLICY_KINDS } from "../policy/inputs.ts";
import { onceEach } from "./once-each.ts";
import type { PolicyNetwork } from "./policy-network.ts";

export interface EnforceMeans {
  readonly signal: AbortSignal;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING" | "ERROR") => void;
}

const netfilter = shareNetfilter();

/** Rejects if it cannot go on. The kernel keeps the rules that it has. */
export async function enforcePolicy(network: PolicyNetwork, { signal, wait, log }: EnforceMeans): Promise<void> {
  const warn = (message: string) => log(message, "WARNING");
  const ending = new AbortController();
  const stop = AbortSignal.any([signal, ending.signal]);
  const store = await openDatastore(network.settings, { environment: process.env, warn });
  const kernel = openKernelTable();
  const problems = onceEach(warn);
  const replica = startReplica(store, POLICY_KINDS, {
    signal: stop,
    watches: network.settings.kind === "orchestrator" ? "per kind" : "together",
    report: ({ message }) => problems.report(message),
  });
  const { node } = network;
  const write = (addresses: readonly FloatingAddress[]) =>
    netfilter.withSocket((socket) => void applyFloating(socket, addresses));
  const floating = followFloating(replica.updates(), { node, write, report: warn, wait, signal: stop });
  const compiler = new PolicyCompiler({ node });
  const refused = onceEach((message) => log(message, "ERROR"));
  const keeper = new TableKeeper({
    compiler,
    kernel,
    isWanted: () => network.isPolicyRequired || compiler.policyCount > 0,
    report: warn,
  });
  const update = (changes: Parameters<TableKeeper["update"]>[0]) => {
    keeper.update(changes);
    problems.forget();
    for (const { title, reason } of compiler.problems) refused.report(`Policy or profile "${title}" denies: ${reason}`);
  };
  try {
    await runPolicyLoop(replica.updates(), { keeper: { update }, wait, signal: stop });
  } finally {
    ending.abort();
    await Promise.all([replica.ended, floating]);
    kernel.close();
    await store.close();
  }
}

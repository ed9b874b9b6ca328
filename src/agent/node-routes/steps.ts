/** Requests to the kernel, with the refusals that do not matter. */
import type { ErrnoName } from "../../linux/errno.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import type { NetlinkRequest } from "../../linux/netlink/request.ts";
import type { NetworkKernel } from "./kernel-network.ts";

export interface Step {
  readonly request: NetlinkRequest;
  /** Refusals that mean that nothing is left to do. */
  readonly tolerates: readonly ErrnoName[];
}

export function put(request: NetlinkRequest): Step {
  return { request, tolerates: [] };
}

/** What is gone already need not be removed. */
export function removal(request: NetlinkRequest): Step {
  return { request, tolerates: ["ENOENT", "ESRCH", "ENODEV"] };
}

/** Sends all in one call. Returns for each, in order, why it was refused, if it was and it matters. */
export function takeSteps(
  kernel: Pick<NetworkKernel, "attempt">,
  steps: readonly Step[],
): readonly (string | undefined)[] {
  if (steps.length === 0) return [];
  const outcomes = kernel.attempt(steps.map(({ request }) => request));
  return steps.map(({ tolerates }, index) => {
    const refusal = outcomes[index];
    const matters = refusal !== undefined && !tolerates.some((name) => isKernelError(refusal, name));
    return matters ? outcomes[index]?.message : undefined;
  });
}

/** Like `takeSteps`, only the refusals. */
export function refusalsOf(kernel: Pick<NetworkKernel, "attempt">, steps: readonly Step[]): readonly string[] {
  return takeSteps(kernel, steps).filter((refusal) => refusal !== undefined);
}

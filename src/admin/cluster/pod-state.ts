/** Whether a test pod runs, and if not, why. Pure. */
import * as v from "valibot";
import { decodeShape } from "../../model/shape.ts";

const waiting = v.optional(v.object({ reason: v.optional(v.string()), message: v.optional(v.string()) }));

const podShape = v.object({
  metadata: v.object({ name: v.string() }),
  status: v.optional(
    v.object({
      phase: v.optional(v.string()),
      reason: v.optional(v.string()),
      message: v.optional(v.string()),
      podIPs: v.optional(v.array(v.object({ ip: v.string() }))),
      conditions: v.optional(
        v.array(
          v.object({
            type: v.string(),
            status: v.string(),
            reason: v.optional(v.string()),
            message: v.optional(v.string()),
          }),
        ),
      ),
      containerStatuses: v.optional(
        v.array(v.object({ state: v.optional(v.object({ waiting, terminated: waiting })) })),
      ),
    }),
  ),
});

type Pod = v.InferOutput<typeof podShape>;

export interface PodState {
  readonly name: string;
  readonly state: "ready" | "waiting" | "failed";
  readonly addresses: readonly string[];
  /** Why it is not ready. */
  readonly reason: string;
}

/** Reasons that do not go away by themselves within the time of a test. */
const FINAL_REASONS = new Set([
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
]);

/** `warnings`: messages of the pod's events, the last one last. */
export function podState(object: unknown, warnings: readonly string[] = []): PodState | undefined {
  const decoded = decodeShape(podShape, object);
  if (!decoded.ok) return undefined;
  const pod = decoded.value;
  const addresses = (pod.status?.podIPs ?? []).map(({ ip }) => ip);
  return { name: pod.metadata.name, addresses, state: stateOf(pod), reason: reasonOf(pod, warnings) };
}

function stateOf(pod: Pod): PodState["state"] {
  const { phase } = pod.status ?? {};
  if (phase === "Failed" || phase === "Succeeded") return "failed";
  if (conditionOf(pod, "Ready")?.status === "True" && (pod.status?.podIPs ?? []).length > 0) return "ready";
  return FINAL_REASONS.has(containerState(pod)?.waiting?.reason ?? "") ? "failed" : "waiting";
}

function reasonOf(pod: Pod, warnings: readonly string[]): string {
  const { phase, reason, message } = pod.status ?? {};
  const scheduled = conditionOf(pod, "PodScheduled");
  if (scheduled?.status === "False") return `it is not scheduled: ${scheduled.message ?? scheduled.reason ?? ""}`;
  if (phase === "Failed" && reason !== undefined) return `${reason}: ${message ?? ""}`;
  const { waiting: waits, terminated } = containerState(pod) ?? {};
  if (terminated !== undefined) return `its program has ended: ${terminated.message ?? terminated.reason ?? ""}`;
  const last = warnings.filter((warning) => !isUninformative(warning)).at(-1);
  if (last !== undefined) return last;
  if (waits?.message !== undefined) return `${waits.reason}: ${waits.message}`;
  if (waits?.reason !== undefined) return waits.reason;
  if (scheduled === undefined) return "no scheduler has assigned it to its node";
  return phase === "Running" ? "it runs, but its kubelet does not reach it" : "its kubelet has not started it";
}

/** Events that say nothing about why a pod does not start, or only that it still does not. */
function isUninformative(warning: string): boolean {
  return /^(MissingClusterDNS|BackOff|Failed: Error: (ImagePullBackOff|ErrImagePull)$)/.test(warning);
}

function conditionOf(pod: Pod, type: string) {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

function containerState(pod: Pod) {
  return pod.status?.containerStatuses?.[0]?.state;
}

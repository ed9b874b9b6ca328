/** How far the operator is with an Installation. Pure. */
import * as v from "valibot";
import { decodeShape } from "../../model/shape.ts";

const text = v.optional(v.string(), "");
const reported = v.object({
  metadata: v.object({ name: v.string(), generation: v.optional(v.number(), 0) }),
  status: v.optional(
    v.object({
      conditions: v.optional(
        v.array(
          v.object({
            type: v.string(),
            status: v.string(),
            reason: text,
            message: text,
            observedGeneration: v.optional(v.number(), 0),
          }),
        ),
        [],
      ),
    }),
    {},
  ),
});

type Reported = v.InferOutput<typeof reported>;

export interface Rollout {
  readonly state: "done" | "in progress" | "failed";
  /** One line per component, and the last one of the whole Installation. */
  readonly lines: readonly string[];
}

/** `installation` and `statuses`: objects of the API, as they are. */
export function rolloutOf(installation: unknown, statuses: readonly unknown[]): Rollout {
  const whole = decodeShape(reported, installation);
  if (!whole.ok) return { state: "in progress", lines: ["installation: not created yet"] };
  const components = statuses.flatMap((each) => {
    const decoded = decodeShape(reported, each);
    return decoded.ok ? [decoded.value] : [];
  });
  const lines = [...components.map((each) => lineOf(each.metadata.name, each)), lineOf("Installation", whole.value)];
  return { state: stateOf(whole.value), lines };
}

/** What is said about an earlier generation of the Installation does not count. */
function stateOf({ metadata, status }: Reported): Rollout["state"] {
  const current = (status.conditions ?? []).filter((each) => each.observedGeneration >= metadata.generation);
  const isTrue = (type: string) => current.some((each) => each.type === type && each.status === "True");
  if (isTrue("Degraded")) return "failed";
  return isTrue("Ready") || isTrue("Available") ? "done" : "in progress";
}

const TYPES = ["Degraded", "Progressing", "Available", "Ready"] as const;

function lineOf(name: string, { status }: Reported): string {
  const conditions = status.conditions ?? [];
  const condition = TYPES.map((type) => conditions.find((each) => each.type === type && each.status === "True")).find(
    (each) => each !== undefined,
  );
  if (condition === undefined) return `${name}: waiting for the operator`;
  const { type, message } = condition;
  return type === "Available" || type === "Ready" || message === ""
    ? `${name}: ${type}`
    : `${name}: ${type}: ${message}`;
}

/** What the node agent says about BIRD: written for `node status`, which also asks BIRD itself. */
import * as v from "valibot";

const birdState = v.object({
  kind: v.picklist(["running", "not needed", "failed"]),
  /** Why it is not needed, or has failed. */
  reason: v.optional(v.string()),
  /** The families that it has sessions of, if it runs. Absent: the agent of an earlier release has written it. */
  families: v.optional(v.array(v.number())),
  /** Absent: this node routes, or the agent of an earlier release has written it. */
  routing: v.optional(v.literal("Disabled")),
  /** What of the plan cannot be carried out. */
  problems: v.array(v.string()),
});

export type BirdState = v.InferOutput<typeof birdState>;

export function writeBirdState(state: BirdState): string {
  return `${JSON.stringify(state)}\n`;
}

/** `undefined` if it cannot be read: another version may have written it. */
export function readBirdState(text: string): BirdState | undefined {
  try {
    const read = v.safeParse(birdState, JSON.parse(text));
    return read.success ? read.output : undefined;
  } catch {
    return undefined;
  }
}

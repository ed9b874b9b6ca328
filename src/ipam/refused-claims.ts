/** What annotations of this node's pods say without effect: the node agent writes it for `node status`. */
import * as v from "valibot";

const SCHEMA = v.array(v.object({ namespace: v.string(), pod: v.string(), refused: v.array(v.string()) }));

/** Of one pod: each claim with its reason. */
export type RefusedClaims = Readonly<v.InferOutput<typeof SCHEMA>[number]>;

/** In the run directory. */
export const REFUSED_CLAIMS_FILE = "refused-claims.json";

export function writeRefusedClaims(refused: readonly RefusedClaims[]): string {
  return `${JSON.stringify(refused)}\n`;
}

/** None if the text cannot be read: another version may have written it. */
export function readRefusedClaims(text: string): readonly RefusedClaims[] {
  try {
    return v.parse(SCHEMA, JSON.parse(text));
  } catch {
    return [];
  }
}

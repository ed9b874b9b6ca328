/** A policy that allows a denied flow: what would be written, and what it would change. */
import * as v from "valibot";

export const policyDraftSchema = v.object({
  /** Documents, ready for `vendorctl apply -f`. */
  yaml: v.string(),
  /** What was generalised and what could not be placed, in words. */
  notes: v.array(v.string()),
  /** The judge's verdict for this flow with the draft applied. `denied`: more than these policies deny it (see notes). */
  verdict: v.picklist(["allowed", "denied", "depends"]),
  /** The command that writes the same. */
  command: v.string(),
});
export type PolicyDraft = Readonly<v.InferOutput<typeof policyDraftSchema>>;

export const appliedDraftSchema = v.object({
  /** `NetworkPolicy shop/allow-web`: created or configured. */
  applied: v.array(v.object({ title: v.string(), outcome: v.picklist(["created", "configured", "unchanged"]) })),
});
export type AppliedDraft = Readonly<v.InferOutput<typeof appliedDraftSchema>>;

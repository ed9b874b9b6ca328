/** A JSON patch as a write, and its refusal if a test in it fails. */
import type { KubeResponse } from "../../kube/api.ts";
import type { Writing } from "./kind-mapping.ts";

export interface Operation {
  readonly op: "test" | "add";
  readonly path: string;
  readonly value: unknown;
}

export function patchOf(path: string, operations: readonly Operation[]): Pick<Writing, "request" | "staleIf"> {
  return {
    request: { method: "PATCH", path, contentType: "application/json-patch+json", body: JSON.stringify(operations) },
    staleIf: isFailedTest,
  };
}

/** The whole reason that the API server gives if a patch cannot be applied; an invalid result, or a policy, has another. */
const INAPPLICABLE = "the server rejected our request due to an error in our request";

/** Our patches are well-formed: only a test in it, or an annotation that is gone, can make one inapplicable. */
function isFailedTest({ status, text }: KubeResponse): boolean {
  return status === 422 && text.includes(INAPPLICABLE);
}

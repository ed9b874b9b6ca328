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

/** Everything else that is invalid about a patch is an error of its own. */
function isFailedTest({ status, text }: KubeResponse): boolean {
  return status === 422 && text.includes("testing value");
}

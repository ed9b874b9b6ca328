import type { Node } from "./node.ts";
import { orchestratorReference } from "./node-reference.ts";

/** Of a node on etcd, whose name may be another one there; its own name if nothing else is recorded. */
export function orchestratorName({ metadata, spec }: Node): string {
  return orchestratorReference(spec) ?? metadata.name;
}

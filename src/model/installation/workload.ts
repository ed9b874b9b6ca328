/** What an administrator overrides in a workload that the operator renders: the fields of its pods that are his to decide. */
import * as v from "valibot";
import { anyObjectField, nodeSelectorField, resourcesField, tolerationField } from "./fields.ts";

/** `container`: the only container whose resources can be set. */
export function workloadSchema(container: string) {
  const name = v.pipe(
    v.string(),
    v.regex(new RegExp(`^${container}$`), `is not a container of this workload; use "${container}"`),
  );
  const podSpec = v.object({
    affinity: v.exactOptional(anyObjectField),
    nodeSelector: v.exactOptional(nodeSelectorField),
    tolerations: v.exactOptional(v.array(tolerationField)),
    containers: v.exactOptional(v.array(v.object({ name, resources: v.exactOptional(resourcesField) }))),
  });
  const template = v.object({ spec: v.exactOptional(podSpec) });
  return v.object({ spec: v.exactOptional(v.object({ template: v.exactOptional(template) })) });
}

export type DeclaredWorkload = Readonly<v.InferOutput<ReturnType<typeof workloadSchema>>>;

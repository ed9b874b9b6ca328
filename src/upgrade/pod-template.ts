/** Reads the parts of DaemonSets and Deployments that an upgrade looks at. Pure. */
import type { Fields } from "../kube/objects.ts";
import { fieldsIn, itemsIn, textIn } from "./object-fields.ts";

export function podSpecOf(workload: unknown): Fields {
  return fieldsIn(workload, "spec", "template", "spec");
}

/** A workload whose pods have this spec. */
export function withPodSpec<Workload extends Fields>(workload: Workload, podSpec: Fields): Workload {
  const spec = fieldsIn(workload, "spec");
  return { ...workload, spec: { ...spec, template: { ...fieldsIn(spec, "template"), spec: podSpec } } };
}

/** The values of variables, those of ConfigMaps included. What comes from elsewhere, such as a field of the pod, is left out. */
export function environmentOf(
  container: Fields | undefined,
  configMaps: Readonly<Record<string, Fields>>,
): ReadonlyMap<string, string> {
  const variables = itemsIn(container, "env").flatMap((variable) => {
    const name = textIn(variable, "name") ?? "";
    const source = fieldsIn(variable, "valueFrom", "configMapKeyRef");
    const given = variable["valueFrom"] === undefined ? (variable["value"] ?? "") : undefined;
    const value = given ?? fieldsIn(configMaps[textIn(source, "name") ?? ""], "data")[textIn(source, "key") ?? ""];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return new Map(variables);
}

export interface UnreadVariable {
  readonly name: string;
  /** `fieldRef status.hostIP`, `secretKeyRef proxy/url` */
  readonly source: string;
}

/** Variables whose values `environmentOf` leaves out. */
export function unreadVariables(
  container: Fields | undefined,
  configMaps: Readonly<Record<string, Fields>>,
): readonly UnreadVariable[] {
  return itemsIn(container, "env").flatMap((variable) => {
    const [kind, reference] = Object.entries(fieldsIn(variable, "valueFrom"))[0] ?? [];
    // A key that a ConfigMap does not have is a variable that is not set.
    if (kind === undefined || (kind === "configMapKeyRef" && configMaps[textIn(reference, "name") ?? ""])) return [];
    const parts = ["name", "fieldPath", "resource", "key"].flatMap((part) => textIn(reference, part) ?? []);
    return [{ name: textIn(variable, "name") ?? "", source: `${kind} ${parts.join("/")}` }];
  });
}

/** The switch of automatic host endpoints in the KubeControllersConfiguration `default`. Pure. */
import { CONTROLLERS, type KubeControllersConfigurationSpec } from "../../../model/kube-controllers-configuration.ts";

type Sections = NonNullable<KubeControllersConfigurationSpec["controllers"]>;
type NodeSection = NonNullable<Sections["node"]>;
export type AutoCreate = "Enabled" | "Disabled";

export function autoCreateOf(spec: KubeControllersConfigurationSpec | undefined): AutoCreate | undefined {
  return spec?.controllers?.node?.hostEndpoint?.autoCreate;
}

export function syncsLabels(spec: KubeControllersConfigurationSpec | undefined): boolean {
  return spec?.controllers?.node?.syncLabels !== "Disabled";
}

/** Controllers without a section do not run, once there is any: without sections, all get one. */
export function withAutoCreate(
  spec: KubeControllersConfigurationSpec,
  autoCreate: AutoCreate | undefined,
): KubeControllersConfigurationSpec {
  const sections: Sections = spec.controllers ?? Object.fromEntries(CONTROLLERS.map((name) => [name, {}]));
  const { hostEndpoint: _, ...node }: Partial<NodeSection> = sections.node ?? {};
  const switched = autoCreate === undefined ? {} : { hostEndpoint: { autoCreate } };
  return { ...spec, controllers: { ...sections, node: { ...node, ...switched } } };
}

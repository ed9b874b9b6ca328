/**
 * The names that the one executable can be called by, and the part that each runs.
 *
 * The build makes a link for every row; `main.ts` loads only the part that was
 * called.
 */
import type { Identity } from "../identity.ts";

/** Started by a container runtime, one process per call. */
export type PluginPart = "plugin" | "ipam" | "hostLocal" | "portmap" | "bandwidth";

export type Part = PluginPart | "node" | "controllers" | "operator" | "sidecar" | "console" | "admin";

export function programNames(names: Identity): Readonly<Record<Part, string>> {
  return {
    plugin: names.product,
    ipam: names.ipamType,
    hostLocal: "host-local",
    portmap: "portmap",
    bandwidth: "bandwidth",
    node: names.nodeAgent,
    controllers: names.controllers,
    operator: names.operator,
    sidecar: names.sidecar,
    console: names.console,
    admin: names.adminTool,
  };
}

/** The names that a node needs in the directory of plugins: those that runtimes start, and the admin tool. */
export function installedNames(names: Identity): readonly string[] {
  const { plugin, ipam, hostLocal, portmap, bandwidth, admin } = programNames(names);
  return [plugin, ipam, hostLocal, portmap, bandwidth, admin];
}

/** The inverse of `programNames`; without a table, since every start needs it. */
export function partNamed(name: string, names: Identity): Part | undefined {
  switch (name) {
    case names.product:
      return "plugin";
    case names.ipamType:
      return "ipam";
    case "host-local":
      return "hostLocal";
    case "portmap":
      return "portmap";
    case "bandwidth":
      return "bandwidth";
    case names.nodeAgent:
      return "node";
    case names.controllers:
      return "controllers";
    case names.operator:
      return "operator";
    case names.sidecar:
      return "sidecar";
    case names.console:
      return "console";
    case names.adminTool:
      return "admin";
    default:
      return undefined;
  }
}

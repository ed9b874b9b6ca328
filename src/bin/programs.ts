/**
 * The names the one executable answers to, and the part behind each.
 *
 * A name stands here only when its part exists. The build makes a link for
 * every row; `main.ts` loads the part that was called, and nothing else.
 */
import type { Identity } from "../identity.ts";

/** Run by a container runtime, a process for each call. */
export type PluginPart = "plugin" | "ipam" | "hostLocal" | "portmap" | "bandwidth";

export type Part = PluginPart | "node" | "admin";

export function programNames(names: Identity): Readonly<Record<Part, string>> {
  return {
    plugin: names.product,
    ipam: names.ipamType,
    hostLocal: "host-local",
    portmap: "portmap",
    bandwidth: "bandwidth",
    node: names.nodeAgent,
    admin: names.adminTool,
  };
}

/** The opposite of `programNames`, without a table of them: the one thing that every start asks for. */
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
    case names.adminTool:
      return "admin";
    default:
      return undefined;
  }
}

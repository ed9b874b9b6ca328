import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";

export const bgpRoutes: Command = {
  kind: "command",
  name: "routes",
  summary: "Show the routes that this node learned and announces by BGP",
  description: [
    "Runs on the node, as root. Shows the routes of BIRD and whether the kernel uses them (IN FIB). A learned route that is not",
    "in the kernel lies in a pool with a tunnel mode, which the node agent routes, or a better route to its destination exists.",
    "Routes of this node are announced only; the routes to its pods are the node agent's.",
    "If BIRD does not run, only the routes are shown that it left in the kernel, and the exit code is 1.",
  ].join("\n"),
  examples: [
    { command: "bgp routes", does: "Which networks does this node know by BGP, and by whom?" },
    { command: "bgp routes -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./routes.ts")),
};

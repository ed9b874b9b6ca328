import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";

export const statusCommand: Command = {
  kind: "command",
  name: "status",
  summary: "Show how the network is doing: in the cluster, or on this host",
  description: [
    "In a cluster, shows the components, the nodes with their agents, the pools with their usage, and the releases. Works for an",
    "Installation of the operator and for manifests. Of each node also how many BGP sessions are established, and which are not; tunnels that",
    "cannot be made, and paths that lose packets: as its agent wrote it last, and as of when if that agent does not run now.",
    "On a host whose network has no Kubernetes (podman), shows the node agent, the datastore, the pools, the containers and host",
    "endpoints of this host and the policies that select them. So it does if nothing names a cluster: no --kubeconfig, no KUBECONFIG, no ~/.kube/config.",
    "Then everything that is wrong follows, with what to do about it: on a host also what node check and ipam check find (as root).",
    "The exit code is 1 if something is wrong; warnings alone do not count. The datastore is the one of the installed network, unless",
    "options name another.",
  ].join("\n"),
  options: [
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["text", "json", "yaml"],
      summary: "Output format: text (default), json or yaml",
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "status", does: `Is ${identity.title} doing well in this cluster, or on this host?` },
    { command: "status --kubeconfig FILE", does: "The cluster, on a host whose own network is another" },
    { command: "status -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./status.ts")),
};

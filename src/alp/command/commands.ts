import { CLUSTER_OPTIONS } from "../../admin/cluster/options.ts";
import type { Command, CommandGroup } from "../../admin/main/command.ts";
import { ALL_NAMESPACES_OPTION, NAMESPACE_OPTION } from "../../admin/resources/options.ts";
import { loadOnce } from "../../load-once.ts";
import { MESH_MINORS } from "../mesh/mesh-minor.ts";
import { REMOVE_OPTION } from "./options.ts";

const alpStatus: Command = {
  kind: "command",
  name: "status",
  summary: "Show which workloads run which release of the sidecar, and which need one",
  description: [
    "Lists the workloads whose pods have the sidecar for application layer policy, the release of it, and how many of the pods report",
    'to their node agent; and workloads without it that need it: policies with "http" rules select them, or the mesh\'s proxy asks it.',
    "Without a sidecar that reports in, such rules match nothing. With one that the mesh's proxy does not ask, since the EnvoyFilter is",
    "missing, they allow every request. The exit code is 1 in these cases; another release than that of this tool is a warning.",
  ].join("\n"),
  options: [
    NAMESPACE_OPTION,
    ALL_NAMESPACES_OPTION,
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["text", "wide", "json", "yaml"],
      summary: "Output format: text (default), wide, json or yaml",
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "alp status -A", does: "Which workloads of the cluster have the sidecar, and does it work?" },
    { command: "alp status -n shop -o wide", does: "Also with policies and images" },
    { command: "alp status -A -o json", does: "As JSON for a script" },
  ],
  load: loadOnce(() => import("./status.ts")),
};

const alpTemplate: Command = {
  kind: "command",
  name: "template",
  summary: "Print the configuration of the mesh's injector with the sidecar inserted",
  description: [
    "Reads the ConfigMap of the injector, from the cluster or from a file, and prints it with the sidecar for application layer policy;",
    "whatever else it contains stays as it is. Nothing in the cluster is changed: apply what is printed, then restart the workloads.",
    "If the sidecar is there already, it is replaced by that of this release; a second run changes nothing.",
    `There are templates for the mesh ${MESH_MINORS.join(", ")}; another version gets that of the nearest earlier one, and is refused if its injector has another form.`,
  ].join("\n"),
  options: [
    {
      name: "mesh-version",
      value: "VERSION",
      summary: "Version of the mesh, such as 1.15 or 1.15.3 (default: that of its control plane in the cluster)",
    },
    {
      name: "filename",
      letter: "f",
      value: "FILE",
      summary: "Read the ConfigMap from a file, or from standard input (-)",
    },
    { name: "namespace", letter: "n", value: "NAMESPACE", summary: "Namespace of the mesh (default: istio-system)" },
    { name: "revision", value: "NAME", summary: "Revision of the mesh, if it has one" },
    {
      name: "image",
      value: "IMAGE",
      summary:
        "Image of the sidecar (default, in this release: the one that the injector has; else that of the node agents, with -f that of the product's registry)",
    },
    REMOVE_OPTION,
    ...CLUSTER_OPTIONS,
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["yaml", "json", "patch"],
      summary: "Output format: yaml (default), json, or patch, a merge patch of the ConfigMap",
    },
  ],
  examples: [
    { command: "alp template | kubectl apply -f -", does: "Insert the sidecar into the injector of the cluster" },
    {
      command: "alp template --revision canary -o patch > patch.json",
      does: "As a merge patch for the injector of a revision",
    },
    {
      command: "alp template --mesh-version 1.15 -f injector.yaml",
      does: "Of a ConfigMap in a file, without a cluster",
    },
    { command: "alp template --remove | kubectl apply -f -", does: "Take the sidecar out of the injector again" },
  ],
  load: loadOnce(() => import("./template.ts")),
};

export const ALP_COMMANDS: CommandGroup = {
  kind: "group",
  name: "alp",
  summary: "Application layer policy: the sidecar beside the proxy of a service mesh",
  commands: [alpStatus, alpTemplate],
};

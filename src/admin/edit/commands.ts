import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";
import { DRY_RUN_OPTION, KIND_WORDS, NAMESPACE_OPTION } from "../resources/options.ts";
import { CONTAINER_WORDS, NODE_OPTION } from "./options.ts";

export const editCommand: Command = {
  kind: "command",
  name: "edit",
  summary: "Change a resource in an editor",
  description: [
    "Opens the resource as YAML in $EDITOR, otherwise $VISUAL, otherwise vi, and writes what was changed.",
    "A change by someone else in the meantime is kept; if it is to the same field, nothing is written.",
    "If the resource is not valid, the editor opens again with the error; saving it unchanged then gives up.",
    "Fields of the resource that have no effect in this version are reported on stderr.",
  ].join("\n"),
  operands: "KIND NAME | KIND/NAME",
  completes: KIND_WORDS,
  completesNames: "one",
  options: [NAMESPACE_OPTION],
  needsDatastore: true,
  examples: [
    { command: "edit ippool blue", does: "Edit a pool" },
    { command: "edit wep/prod/name", does: "Edit a workload endpoint of a namespace" },
  ],
  load: loadOnce(() => import("./edit.ts")),
};

export const patchCommand: Command = {
  kind: "command",
  name: "patch",
  summary: "Update fields of a resource",
  description: [
    "A merge patch (--type merge, RFC 7386) is an object: objects are merged, null removes a field, lists are replaced.",
    "A strategic patch (--type strategic) is a merge patch with the directive $patch: replace or delete in an object. Lists of these kinds\nhave no merge keys, so that it replaces a list as a merge patch does, and directives for members of a list are refused.",
    "A JSON patch (--type json, RFC 6902) is a list of operations: add, remove, replace, move, copy and test.",
    "If the patched resource has another metadata.resourceVersion than the stored one, it is not written.",
    "Fields of the resource that have no effect in this version are reported on stderr.",
  ].join("\n"),
  operands: "KIND NAME",
  completes: KIND_WORDS,
  completesNames: "one",
  options: [
    { name: "patch", letter: "p", value: "PATCH", summary: "The patch, as JSON or YAML" },
    { name: "patch-file", value: "FILE", summary: "File with the patch, or - for standard input" },
    {
      name: "type",
      letter: "t",
      value: "TYPE",
      oneOf: ["merge", "json", "strategic"],
      summary: "Type of the patch: merge (default), json or strategic",
    },
    NAMESPACE_OPTION,
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    {
      command: `patch ippool blue -p '{"spec":{"disabled":true}}'`,
      does: "Disable a pool: no new addresses are assigned from it",
    },
    {
      command: `patch node n1 --type json -p '[{"op":"remove","path":"/metadata/labels/rack"}]'`,
      does: "Apply a list of operations",
    },
    {
      command: `patch bgppeer tor -t strategic -p '{"spec":{"$patch":"replace","peerIP":"192.0.2.1","asNumber":64512}}'`,
      does: "Replace an object as a whole",
    },
    { command: "patch ippool blue -p 'spec: {nodeSelector: null}'", does: "Reset a field to its default" },
  ],
  load: loadOnce(() => import("./patch.ts")),
};

export const labelCommand: Command = {
  kind: "command",
  name: "label",
  summary: "Add, change or remove labels of a resource, a container or all containers of a network",
  description: [
    "KEY=VALUE sets a label, KEY- removes it, as does KEY with --remove.",
    "An existing label with another value is changed only with --overwrite.",
    "Labels of a container or a network are written to a ContainerLabels: they apply at once and stay when a container is restarted.",
    "Labels of a workloadendpoint are those of a running container, and end with it.",
    "If labels close or open workloads or hosts, or change whom their rules match, stderr says which.",
  ].join("\n"),
  operands: "KIND NAME KEY=VALUE… KEY-… | container NAME … | network NAME …",
  completes: [...KIND_WORDS, ...CONTAINER_WORDS],
  completesNames: "one",
  options: [
    { name: "overwrite", summary: "Change existing labels that have another value" },
    { name: "remove", summary: "Remove the labels that are given as KEY" },
    NODE_OPTION,
    NAMESPACE_OPTION,
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    {
      command: "label node n1 rack=a",
      does: "Set a label: pools with nodeSelector rack == 'a' now apply to this node",
    },
    { command: "label node n1 rack-", does: "Remove the label" },
    {
      command: "label container web role=web",
      does: "Label a container of this host, now and after each restart: policies that select role=web apply at once",
    },
    { command: "label network databases role=database", does: "Label every container of a network" },
  ],
  load: loadOnce(() => import("./label.ts")),
};

export const annotateCommand: Command = {
  kind: "command",
  name: "annotate",
  summary: "Add, change or remove annotations of a resource",
  description: [
    "KEY=VALUE sets an annotation, KEY- removes it. An existing annotation with another value is changed only with --overwrite.",
    "Annotations of pods and namespaces are those of Kubernetes: kubectl annotate.",
  ].join("\n"),
  operands: "KIND NAME KEY=VALUE… KEY-…",
  completes: KIND_WORDS,
  completesNames: "one",
  options: [
    { name: "overwrite", summary: "Change existing annotations that have another value" },
    NAMESPACE_OPTION,
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    { command: 'annotate ippool blue owner="network team"', does: "Set an annotation" },
    { command: "annotate ippool blue owner=me --overwrite", does: "Change it" },
    { command: "annotate ippool blue owner-", does: "Remove it" },
  ],
  load: loadOnce(() => import("./annotate.ts")),
};

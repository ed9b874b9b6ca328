import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";
import { FILE_OPTIONS } from "../manifest/options.ts";

export const convertCommand: Command = {
  kind: "command",
  name: "convert",
  summary: "Convert resources of another API group, or Kubernetes NetworkPolicies, to resources of this release",
  description: [
    "Reads Kubernetes NetworkPolicies (networking.k8s.io/v1, extensions/v1beta1) and resources of another API group (GROUP/v3,",
    "crd.GROUP/v1), which get this product's, in labels, annotations and selectors too. Resources of this release are printed as they",
    "are. No datastore is needed, and nothing is written.",
    "A resource that is not valid is an error, unless --ignore-validation is given: then it is reported on stderr.",
    "A rule of a NetworkPolicy that cannot be converted is left out, so that the policy allows less, and reported on stderr.",
  ].join("\n"),
  options: [
    ...FILE_OPTIONS,
    { name: "ignore-validation", summary: "Print resources that are not valid too" },
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["yaml", "json"],
      summary: "Output format: yaml (default) or json",
    },
  ],
  examples: [
    { command: "convert -f networkpolicy.yaml > policy.yaml", does: "Convert a Kubernetes NetworkPolicy" },
    { command: "convert -f policies-of-another-group.yaml -o json", does: "Convert resources of another API group" },
  ],
  load: loadOnce(() => import("./convert.ts")),
};

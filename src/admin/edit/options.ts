import type { Option } from "../main/option.ts";

/** What can be labelled, beside kinds. */
export const CONTAINER_WORDS = ["container", "network"] as const;

export const NODE_OPTION: Option = {
  name: "node",
  value: "NAME",
  summary: "Node of the container (default: this host)",
};

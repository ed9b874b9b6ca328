import type { Option } from "../main/option.ts";

export const NODE_NAME_OPTION: Option = {
  name: "name",
  value: "NAME",
  summary: "Name of the node; default: the one that the plugins use",
};

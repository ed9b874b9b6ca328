import type { Option } from "../../main/option.ts";
import { FILE_OPTION, RECURSIVE_OPTION } from "../../manifest/options.ts";
import { NAMESPACE_OPTION } from "../../resources/options.ts";

export const WITHOUT_OPTION: Option = {
  name: "without",
  value: "KIND/NAME",
  repeats: true,
  summary: "As if the resource were deleted; NAME or NAMESPACE/NAME means a policy; can be repeated",
};

export const STAGED_OPTION: Option = {
  name: "staged",
  summary: "As if all staged policies were promoted, also those of -f",
};

export const WHAT_IF_OPTIONS: readonly Option[] = [
  {
    ...FILE_OPTION,
    summary: "As if the resources of the file, directory or - (standard input) were applied; can be repeated",
  },
  RECURSIVE_OPTION,
  WITHOUT_OPTION,
  STAGED_OPTION,
  { ...NAMESPACE_OPTION, summary: "Namespace of what -f and --without name without one (default: default)" },
];

export const BY_OPTION: Option = {
  name: "by",
  value: "GROUPING",
  oneOf: ["group", "namespace"],
  summary: "group (namespace and owner; default unless there are many) or namespace",
};

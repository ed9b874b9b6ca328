import type { Option } from "../../main/option.ts";

export const EXPORT_OPTION: Option = {
  name: "filename",
  letter: "f",
  value: "FILE",
  summary: "The export, or - for standard input",
};

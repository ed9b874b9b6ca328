import type { Option } from "../main/option.ts";

export const SKIP_EXISTS_OPTION: Option = {
  name: "skip-exists",
  summary: "Leave resources that exist already as they are, and do not fail",
};

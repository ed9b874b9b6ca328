/** The options of commands that read files with resources. */
import type { Option } from "../main/option.ts";

export const FILE_OPTION: Option = {
  name: "filename",
  letter: "f",
  value: "FILE",
  repeats: true,
  summary: "File or directory with YAML or JSON documents, or - for standard input; can be repeated",
};

export const RECURSIVE_OPTION: Option = {
  name: "recursive",
  letter: "R",
  summary: "Also read the subdirectories of the directories given with -f",
};

export const SKIP_EMPTY_OPTION: Option = {
  name: "skip-empty",
  summary: "Do not fail if the files and directories given with -f contain no resource",
};

export const FILE_OPTIONS: readonly Option[] = [FILE_OPTION, RECURSIVE_OPTION, SKIP_EMPTY_OPTION];

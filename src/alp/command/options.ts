import type { Option } from "../../admin/main/option.ts";

export const REMOVE_OPTION: Option = { name: "remove", summary: "Take the sidecar out of the injector again" };

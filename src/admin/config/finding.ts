/** One finding of `config check`, before it has a position in the file. */
import type { ConfigPath } from "../../config/problem.ts";

/** An error will fail a call, a warning may surprise, a note says what was not checked. */
export type Severity = "error" | "warning" | "note";

export interface ConfigFinding {
  readonly severity: Severity;
  readonly path: ConfigPath;
  readonly message: string;
  /** A warning of what would fail on this host, though maybe not where the config is for. */
  readonly failsHere?: true;
}

export function error(path: ConfigPath, message: string): ConfigFinding {
  return { severity: "error", path, message };
}

export function warning(path: ConfigPath, message: string): ConfigFinding {
  return { severity: "warning", path, message };
}

/** The config itself is right, but this host does not use it. */
export function refusedHere(path: ConfigPath, message: string): ConfigFinding {
  return { severity: "warning", path, message, failsHere: true };
}

export function note(path: ConfigPath, message: string): ConfigFinding {
  return { severity: "note", path, message };
}

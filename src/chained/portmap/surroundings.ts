/** What the plugin needs of the process it runs in. */
export interface Surroundings {
  warn(message: string): void;
  /** `process`: it ends with the call, and what is left open with it. */
  readonly lifetime: "process" | "call";
}

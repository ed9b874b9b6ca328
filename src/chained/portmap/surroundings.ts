import type { Lifetime } from "../../lifetime.ts";

/** What the plugin needs of the process it runs in. */
export interface Surroundings {
  warn(message: string): void;
  readonly lifetime: Lifetime;
}

import type { ResourceName } from "../../model/keys.ts";

/** The result of a command for one resource. */
export interface ActionResult {
  /** What happened to it: `created`, `deleted` … */
  readonly action: string;
  readonly revision?: string;
  /** If only the action could tell which resource it is. */
  readonly name?: ResourceName;
  /** Additional information for the user. */
  readonly note?: string;
  /** What the resource requests and nothing carries out. */
  readonly warnings?: readonly string[];
}

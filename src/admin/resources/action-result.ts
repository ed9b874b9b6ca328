/** The result of a command for one resource. */
export interface ActionResult {
  /** What happened to it: `created`, `deleted` … */
  readonly action: string;
  readonly revision?: string;
  /** Additional information for the user. */
  readonly note?: string;
  /** What the resource requests and nothing carries out. */
  readonly warnings?: readonly string[];
}

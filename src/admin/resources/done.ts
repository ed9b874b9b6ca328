/** What became of one resource that a command was given. */
export interface Done {
  /** What happened to it: `created`, `deleted` … */
  readonly action: string;
  readonly revision?: string;
  /** What the user should know besides. */
  readonly note?: string;
}

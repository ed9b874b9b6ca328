/** A command to run, with exactly this environment. */
export interface Command {
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** What is to be run: with this environment and no other. */
export interface Command {
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

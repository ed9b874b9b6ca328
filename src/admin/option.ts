export interface Option {
  /** Long name without dashes: `effective`. */
  readonly name: string;
  /** One letter: `o` for `-o`. */
  readonly letter?: string;
  /** What the value is called in help (`FILE` completes to files); absent for a switch. */
  readonly value?: string;
  /** The only values allowed. */
  readonly oneOf?: readonly string[];
  /** May be given several times; all its values stand in `Given.lists`. */
  readonly repeats?: true;
  readonly summary: string;
}

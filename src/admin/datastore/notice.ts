/**
 * Says on stderr which datastore a command uses if the user did not select it: it is then that of the network config
 * of this host.
 *
 * Most users have one datastore, so it is said only if it matters: when it is created, when the command is about the
 * datastore, with `--log-level debug`, if a list is empty in a datastore that nobody has initialized, and before the first
 * error.
 */
export class DatastoreNotice {
  private text = "";

  constructor(private readonly stderr: (text: string) => void) {}

  /** Keeps the notice until it matters. */
  keep(text: string): void {
    this.text = text;
  }

  get isKept(): boolean {
    return this.text !== "";
  }

  /** Prints the notice, unless there is none or it was printed already. */
  print(): void {
    if (this.text !== "") this.stderr(`${this.text}\n`);
    this.text = "";
  }
}

import type { Datastore } from "../../datastore/datastore.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";

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

/** The resources may be in another datastore, if nobody has initialized this one. */
export async function reportNothingFound(
  context: { readonly datastoreNotice?: DatastoreNotice; stderr(text: string): void },
  store: Pick<Datastore, "read">,
): Promise<void> {
  if (context.datastoreNotice?.isKept && !(await isInitialized(store))) context.datastoreNotice.print();
  context.stderr("No resources found.\n");
}

async function isInitialized(store: Pick<Datastore, "read">): Promise<boolean> {
  return store.read([WANTED_CLUSTER]).then(
    ({ answers }) => answers.flat().length > 0,
    () => false,
  );
}

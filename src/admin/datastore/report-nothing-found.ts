import type { Datastore } from "../../datastore/datastore.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import type { DatastoreNotice } from "./notice.ts";

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

/** A resource as it can be created in another namespace or cluster: without what the datastore and its place add. */
import type { Stored } from "./stored.ts";

export function exported(stored: Stored): Stored {
  const { status: _, ...resource } = stored.resource;
  const { name, labels, annotations } = resource.metadata;
  const metadata = {
    name,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
  return { ...stored, resource: { ...resource, metadata } };
}

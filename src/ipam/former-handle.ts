/**
 * The handle that older releases used: the container ID alone, without the
 * network. Clusters upgraded from such a release may still have such addresses.
 * DEL releases them and CHECK counts them; GC does not touch them, since the
 * handle does not tell which network they belong to.
 */
export interface FormerHandle {
  readonly handle: string;
  readonly node: string;
}

/** For a request to release or to read. An ID with a dot could be the handle of some network's container. */
export function withFormerHandle(containerId: string, node: string): { readonly former?: FormerHandle } {
  return containerId.includes(".") ? {} : { former: { handle: containerId, node } };
}

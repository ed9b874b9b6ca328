/**
 * The handle of addresses that were assigned long ago: the container ID alone,
 * without the network. Clusters that were upgraded from such a release may still
 * hold some. DEL releases them and CHECK counts them; GC leaves them alone, since
 * the handle does not say of which network they are.
 */
export interface FormerHandle {
  readonly handle: string;
  readonly node: string;
}

/** For a request to release or to read. An ID with a dot could be the handle of some network's container. */
export function withFormerHandle(containerId: string, node: string): { readonly former?: FormerHandle } {
  return containerId.includes(".") ? {} : { former: { handle: containerId, node } };
}

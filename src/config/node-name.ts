/**
 * The name of this node: what the config says, else what the node agent wrote
 * into its file, else the host name. White space around any of them never matters.
 */
export interface NodeNameSources {
  readonly nodename?: string | undefined;
  /** What the node name file holds; `undefined` when there is none. */
  readonly fileText?: string | undefined;
  readonly hostName: string;
}

export function chooseNodeName({ nodename, fileText, hostName }: NodeNameSources): string {
  // Only the host name is folded: the other two are names that somebody registered.
  return nodename?.trim() || fileText?.trim() || hostName.trim().toLowerCase();
}

/**
 * The name of this node: what the config says, else what the node agent wrote
 * into its file, else the host name. White space around any of them never matters.
 */
export interface NodeNameSources {
  readonly nodename?: string | undefined;
  /** What the node name file holds; `undefined` when there is none. */
  readonly fileText?: string | undefined;
  readonly hostName?: string;
}

/** Empty where no source gives one. */
export function chooseNodeName({ nodename, fileText, hostName = "" }: NodeNameSources): string {
  // Only the host name is folded: the other two are names that somebody registered.
  return nodename?.trim() || fileText?.trim() || hostName.trim().toLowerCase();
}

/** Names are parts of keys: a slash would divide one in two, and not every piece of JSON text can be written down. */
export function isNodeName(name: string): boolean {
  return name.isWellFormed() && !name.includes("/") && !name.includes("\0");
}

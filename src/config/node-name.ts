/**
 * The name of this node: from the config, else from the node agent's file, else the
 * host name. Surrounding white space is ignored.
 */
export interface NodeNameSources {
  readonly nodename?: string | undefined;
  /** The content of the node name file; `undefined` if there is none. */
  readonly fileText?: string | undefined;
  readonly hostName?: string;
}

/** Empty if no source has one. */
export function chooseNodeName({ nodename, fileText, hostName = "" }: NodeNameSources): string {
  // Only the host name is converted to lower case: the other two are names that were registered.
  return nodename?.trim() || fileText?.trim() || hostName.trim().toLowerCase();
}

/**
 * The names that this node may have in the orchestrator, the most likely one first: our node may be registered under
 * another name.
 */
export async function orchestratorNodeNames(
  { kubernetes }: { readonly kubernetes: { readonly nodeName: string | undefined } },
  node: string,
  hostName: () => Promise<string>,
): Promise<readonly string[]> {
  if (kubernetes.nodeName !== undefined) return [kubernetes.nodeName];
  return [...new Set([node, chooseNodeName({ hostName: await hostName() })])];
}

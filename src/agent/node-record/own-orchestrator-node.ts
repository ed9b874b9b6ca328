/**
 * What the orchestrator's Node says of this host, asked rarely: the ranges of its pods if the network config uses them
 * (host-local with `usePodCidr`), and its addresses if a setting names them.
 */
import { PluginError } from "../../errors.ts";
import type { Address, Family } from "../../ip/address.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import type { OrchestratorNode } from "../../kube/orchestrator-node.ts";
import type { Node } from "../../model/node.ts";
import { orchestratorReference } from "../../model/node-reference.ts";
import { quoted } from "../../quote.ts";

interface Means {
  /** The name of the Node if our record does not name it. */
  readonly name: string;
  /** The families of ranges that the network config uses; empty if it uses none. */
  readonly families: readonly Family[];
  /** `undefined` if there is no such Node; absent if nothing gives access to the orchestrator's API. */
  readonly read?: ((name: string) => Promise<OrchestratorNode | undefined>) | undefined;
  readonly report: (problem: string) => void;
}

export class OwnOrchestratorNode {
  private known: { readonly name: string; readonly node: OrchestratorNode } | undefined;

  constructor(private readonly means: Means) {}

  distrust(): void {
    this.known = undefined;
  }

  /** Whether ranges are still missing: the orchestrator may assign them later. */
  get isIncomplete(): boolean {
    return this.means.families.length > 0 && this.known === undefined;
  }

  /** `undefined` if they are not known now. */
  async podCidrs(spec: Node["spec"]): Promise<readonly string[] | undefined> {
    const { families } = this.means;
    if (families.length === 0) return [];
    const node = await this.node(spec);
    if (node === undefined) return undefined;
    const used = node.podCidrs.filter((text) => {
      const family = parsePrefix(text)?.network.family;
      return family !== undefined && families.includes(family);
    });
    if (used.length === 0) this.known = undefined;
    return used;
  }

  async internalAddresses(spec: Node["spec"]): Promise<readonly Address[] | undefined> {
    return (await this.node(spec))?.internalAddresses;
  }

  private async node(spec: Node["spec"]): Promise<OrchestratorNode | undefined> {
    const { read, report } = this.means;
    const name = orchestratorReference(spec) ?? this.means.name;
    if (read === undefined) return undefined;
    if (this.known?.name === name) return this.known.node;
    const node = await read(name).catch((failure: unknown) => {
      // The rest of the record does not wait for it.
      if (!(failure instanceof PluginError)) throw failure;
      report(`Cannot read the orchestrator's Node ${quoted(name)}: ${failure.message}`);
    });
    this.known = node === undefined ? undefined : { name, node };
    return this.known?.node;
  }
}

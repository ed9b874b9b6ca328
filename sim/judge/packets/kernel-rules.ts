/** What the rulesets of the kernels say about packets that pass their hooks. */
import type { Address } from "../../../src/ip/address.ts";
import type { NetworkNamespace } from "../../kernel/model.ts";
import { type NetfilterSurroundings, newFlow, verdictOf } from "../../kernel/nftables/verdict.ts";
import type { EnterHost } from "./network.ts";
import { lookUpRoute } from "./route-lookup.ts";

export const kernelRules: EnterHost = ({ root }, state) => {
  const flow = newFlow(state);
  const surroundings = surroundingsOf(root);
  return ({ hook, packet, iif, oif }) => {
    const at = { hook, packet, ...(iif === undefined ? {} : { iif }), ...(oif === undefined ? {} : { oif }) };
    const { by, ...outcome } = verdictOf(root.nftables, at, flow, surroundings);
    if (by === undefined) return outcome;
    const comment = by.comment === undefined ? "" : `, "${by.comment}"`;
    return { ...outcome, by: `table "${by.table}", chain "${by.chain}"${comment}` };
  };
};

function surroundingsOf(root: NetworkNamespace): NetfilterSurroundings {
  return {
    route(to: Address, only?: number) {
      const route = lookUpRoute(root, to, undefined, to.family === 6 ? only : undefined);
      if (route === undefined || route.kind === "throw" || route.kind === "anycast") return undefined;
      return { type: route.kind, oifs: route.linkIndex === undefined ? [] : [route.linkIndex] };
    },
    addressOf: (oif, family) =>
      root.addresses.find(({ linkIndex, address }) => linkIndex === oif && address.family === family)?.address,
    nameOf: (index) => root.links.get(index)?.name,
  };
}

/** What the rulesets of the kernels say about packets that pass their hooks. */
import type { Address } from "../../../src/ip/address.ts";
import type { NetworkNamespace } from "../../kernel/model.ts";
import { type NetfilterSurroundings, newFlow, type PacketFlow, verdictOf } from "../../kernel/nftables/verdict.ts";
import type { AskHook, EnterHost, HookPassage } from "./network.ts";
import { lookUpRoute } from "./route-lookup.ts";

/** The state of the connection is given. */
export const kernelRules: EnterHost = ({ root }, state) => {
  const flow = newFlow(state);
  const surroundings = surroundingsOf(root);
  return (passage) => askRules(root, passage, flow, surroundings);
};

/** Each host knows the state of the connection by the entry that it has of it. */
export const trackedRules: EnterHost = ({ root }) => {
  let flow: PacketFlow | undefined;
  const surroundings = surroundingsOf(root);
  return (passage) => {
    flow ??= newFlow(root.nftables.connections.stateOf(passage.packet));
    return askRules(root, passage, flow, surroundings);
  };
};

/** A real packet: each host enters or refreshes the connection of what has passed its rules, unless it is translated. */
export const trackingRules: EnterHost = (machine, state) => {
  const ask = trackedRules(machine, state);
  let isTranslated = false;
  return (passage) => {
    const outcome = ask(passage);
    isTranslated ||= outcome.packet !== undefined && outcome.packet !== passage.packet;
    const isLast = passage.hook === "postrouting" || passage.hook === "input";
    if (isLast && outcome.verdict === "accept" && !isTranslated)
      machine.root.nftables.connections.track(passage.packet);
    return outcome;
  };
};

function askRules(
  root: NetworkNamespace,
  { hook, packet, iif, oif }: HookPassage,
  flow: PacketFlow,
  surroundings: NetfilterSurroundings,
): ReturnType<AskHook> {
  const at = { hook, packet, ...(iif === undefined ? {} : { iif }), ...(oif === undefined ? {} : { oif }) };
  const { by, ...outcome } = verdictOf(root.nftables, at, flow, surroundings);
  if (by === undefined) return outcome;
  const comment = by.comment === undefined ? "" : `, "${by.comment}"`;
  return { ...outcome, by: `table "${by.table}", chain "${by.chain}"${comment}` };
}

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

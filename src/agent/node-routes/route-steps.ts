/**
 * The requests that set a route.
 *
 * The kernel refuses an IPv6 route by a gateway on a tunnel if the gateway itself is routed elsewhere at that moment: for
 * example the tunnel address of a node, which is in a block of it, while the block is routed past the tunnel. So the gateway
 * is routed to the tunnel first, until the route is set.
 */
import { singlePrefix } from "../../ip/prefix.ts";
import { addRoute, deleteRoute, ROUTE_PROTOCOL, type Route, replaceRoute } from "../../linux/rtnetlink/route.ts";
import { put, removal, type Step } from "./steps.ts";

/** No other route of ours has it. */
const HELPING_PRIORITY = 1;

export interface SettingSteps {
  readonly before: readonly Step[];
  readonly setting: Step;
  readonly after: readonly Step[];
}

/** `add` is refused if there is a route in its place, `replace` is not. */
export function settingSteps(verb: "add" | "replace", route: Route): SettingSteps {
  const setting = put(verb === "add" ? addRoute(route) : replaceRoute(route));
  const { gateway, linkIndex, isOnLink } = route;
  if (gateway?.family !== 6 || linkIndex === undefined || isOnLink !== true) return { before: [], setting, after: [] };
  const helper = {
    destination: singlePrefix(gateway),
    linkIndex,
    protocol: ROUTE_PROTOCOL.own,
    priority: HELPING_PRIORITY,
  };
  return {
    before: [{ request: addRoute(helper), tolerates: ["EEXIST"] }],
    setting,
    after: [removal(deleteRoute(helper))],
  };
}

/** Events about it mean nothing. If an agent was killed in between, the next one removes it as stale. */
export function isHelping({ priority, protocol }: Route): boolean {
  return priority === HELPING_PRIORITY && protocol === ROUTE_PROTOCOL.own;
}

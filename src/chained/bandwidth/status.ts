/** STATUS: whether this process may shape traffic, and whether the kernel supports it. */
import { PluginError } from "../../errors.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import { attempt, ownSockets } from "../../linux/netlink-socket.ts";
import { createIfb } from "../../linux/rtnetlink/link.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";

/** No link can have this name, so nothing is created; the kernel checks the kind of link before the name. */
const IMPOSSIBLE_NAME = "a/b";

export function requireShapingSupport(): void {
  const probe = createIfb({ name: IMPOSSIBLE_NAME, mtu: 1500, state: "down" });
  const [error] = withRouteSocket(ownSockets, (socket) => attempt(socket, [probe]));
  if (isKernelError(error, "EOPNOTSUPP")) throw unable("the kernel has no IFB support; load the module ifb", error);
  if (isKernelError(error, "EPERM")) throw unable("the capability NET_ADMIN is missing", error);
}

function unable(state: string, cause: unknown): PluginError {
  return new PluginError("not-available", `Cannot shape traffic: ${state}`, { cause });
}

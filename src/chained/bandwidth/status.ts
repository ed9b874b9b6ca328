/** STATUS: whether this process may shape, and the kernel can. */
import { PluginError } from "../../errors.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import { attempt } from "../../linux/netlink-socket.ts";
import { createIfb } from "../../linux/rtnetlink/link.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";

/** No link can bear this name, so nothing is made; the kernel looks for the kind of link before it looks at the name. */
const IMPOSSIBLE_NAME = "a/b";

export function requireShapingMeans(): void {
  const probe = createIfb({ name: IMPOSSIBLE_NAME, mtu: 1500, state: "down" });
  const [error] = withRouteSocket((socket) => attempt(socket, [probe]));
  if (isKernelError(error, "EOPNOTSUPP")) throw unable("the kernel has no IFB devices (module ifb)", error);
  if (isKernelError(error, "EPERM")) throw unable("the capability NET_ADMIN is missing", error);
}

function unable(state: string, cause: unknown): PluginError {
  return new PluginError("not-available", `Cannot shape traffic: ${state}`, { cause });
}

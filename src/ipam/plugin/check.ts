/** CHECK: whether the attachment still has the addresses from ADD. */
import type { CheckCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress, parseAddress } from "../../ip/address.ts";
import { quoted } from "../../quote.ts";
import { attachmentOf, heldRequest } from "../attachment.ts";
import type { Session } from "../session.ts";
import { resultAddresses } from "./result-addresses.ts";

export async function check(call: CheckCall, session: Session): Promise<void> {
  const attachment = attachmentOf(call, session);
  const expected = resultAddresses(call.prevResult);
  const held = await (await session.allocator()).held(heldRequest(attachment, expected));
  const names = held.map(({ address }) => formatAddress(address));
  if (names.length === 0) throw failed(`handle ${quoted(attachment.handle)} has no address`);

  const lost = expected.filter((text) => !names.includes(canonical(text)));
  if (lost.length === 0) return;
  throw failed(`handle ${quoted(attachment.handle)} has ${names.join(", ")}, but not ${lost.join(", ")}`);
}

function canonical(text: string): string {
  const address = parseAddress(text);
  return address ? formatAddress(address) : text;
}

function failed(state: string): PluginError {
  return new PluginError("check-failed", `Cannot confirm the addresses of the container: ${state}`);
}

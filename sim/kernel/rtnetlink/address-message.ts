/** An address as the kernel describes it. */
import { addressBytes } from "../../../src/ip/address.ts";
import type { Cause, KernelMessage } from "../message.ts";
import type { ModelAddress } from "../model.ts";
import { type Namespace, writeHeader } from "../namespace.ts";
import { GROUP, IFA, MESSAGE, numberOf } from "../wire.ts";

const HEADER_LENGTH = 8;

export function addressMessage(of: ModelAddress, type: number = MESSAGE.newAddress): KernelMessage {
  return {
    type,
    write(writer) {
      writeHeader(writer, HEADER_LENGTH, (view) => {
        view.setUint8(0, numberOf(of.address.family));
        view.setUint8(1, of.length);
        view.setUint8(2, of.flags & 0xff);
        view.setUint8(3, of.scope);
        view.setUint32(4, of.linkIndex, true);
      });
      const bytes = addressBytes(of.address);
      writer.bytes(IFA.address, bytes);
      if (of.address.family === 4) writer.bytes(IFA.local, bytes);
      writer.u32(IFA.flags, of.flags);
    },
  };
}

export function announceAddress(
  namespace: Namespace,
  address: ModelAddress,
  change: "new" | "delete",
  cause?: Cause,
): void {
  const type = change === "new" ? MESSAGE.newAddress : MESSAGE.deleteAddress;
  namespace.announce(GROUP.address[address.address.family], addressMessage(address, type), cause);
}

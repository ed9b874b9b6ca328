/**
 * A hostile BGP speaker: TARGET AS NEXT_HOP NETWORK…
 *
 * Opens a session from whatever address it has, announces the networks, and holds the session until it is ended. Prints a
 * line for each step: `connected`, `established`, `announced`, `closed`.
 */
const [target = "", as = "", nextHop = "", ...networks] = process.argv.slice(2);
const TYPE = { open: 1, update: 2, keepalive: 4 } as const;
const HOLD_SECONDS = 90;
const KEEPALIVE_MILLISECONDS = 1_000;
/** IPv4 unicast, AS numbers of four bytes, route refresh, graceful restart. */
const CAPABILITIES = [1, 4, 0, 1, 0, 1, 65, 4, ...u32(Number(as)), 2, 0, 64, 2, 0, 120];

function u16(value: number): readonly number[] {
  return [value >> 8, value & 255];
}

function u32(value: number): readonly number[] {
  return [...u16(value >>> 16), ...u16(value & 0xffff)];
}

function ipv4(text: string): readonly number[] {
  return text.split(".").map(Number);
}

function message(type: number, body: readonly number[] = []): Uint8Array {
  return Uint8Array.from([...new Array<number>(16).fill(255), ...u16(19 + body.length), type, ...body]);
}

function open(): Uint8Array {
  const options = [2, CAPABILITIES.length, ...CAPABILITIES];
  return message(TYPE.open, [
    4,
    ...u16(Number(as)),
    ...u16(HOLD_SECONDS),
    ...ipv4(nextHop),
    options.length,
    ...options,
  ]);
}

/** Origin, an empty path of ASs, next hop, local preference 1000. */
function update(): Uint8Array {
  const attributes = [64, 1, 1, 0, 64, 2, 0, 64, 3, 4, ...ipv4(nextHop), 64, 5, 4, ...u32(1000)];
  const announced = networks.flatMap((network) => {
    const [address = "", length = ""] = network.split("/");
    return [Number(length), ...ipv4(address).slice(0, Math.ceil(Number(length) / 8))];
  });
  return message(TYPE.update, [0, 0, ...u16(attributes.length), ...attributes, ...announced]);
}

let isEstablished = false;
await Bun.connect({
  hostname: target,
  port: 179,
  socket: {
    open(socket) {
      console.log("connected");
      socket.write(open());
    },
    data(socket, data) {
      if (isEstablished || data[18] !== TYPE.open) return;
      isEstablished = true;
      console.log("established");
      socket.write(message(TYPE.keepalive));
      socket.write(update());
      console.log("announced");
      setInterval(() => void socket.write(message(TYPE.keepalive)), KEEPALIVE_MILLISECONDS);
    },
    close() {
      console.log("closed");
      process.exit();
    },
  },
});

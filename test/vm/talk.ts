/** Who answers whom in guests, over TCP or over SCTP of the guest's own kernel. */
import type { Guest } from "./guest.ts";

export type Transport = "tcp" | "sctp";
const PROTOCOL: Readonly<Record<Transport, number>> = { tcp: 6, sctp: 132 };
/** What is not there after so many seconds is taken for lost. */
const PATIENCE_SECONDS = 10;

const SERVER = `
import socket, sys
name, protocol, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("", port))
server.listen(16)
print("listens", flush=True)
while True:
    client, peer = server.accept()
    client.sendall((name + " to " + peer[0]).encode())
    client.close()`;

const CLIENT = `
import socket, sys
protocol, address, port, patience = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
client.settimeout(patience)
try:
    client.connect((address, port))
    print(client.recv(100).decode())
except OSError as error:
    print("nothing:", error)`;

/** Runs until the guest ends; replies with its name and the address that it sees. `netns`: of the pod, or the guest itself. */
export async function serve(
  guest: Guest,
  place: { readonly netns?: string; readonly name: string; readonly port: number; readonly transport?: Transport },
): Promise<void> {
  const { netns, name, port, transport = "tcp" } = place;
  const log = `server-${name}-${transport}-${port}`;
  const words = ["python3", "-c", SERVER, name, String(PROTOCOL[transport]), String(port)];
  await guest.start(netns === undefined ? words : ["nsenter", `--net=/run/netns/${netns}`, ...words], log);
  await guest.must(["sh", "-c", `until grep -q listens /run/guest/${log}; do sleep 0.1; done`]);
}

/** The reply, or `nothing: …`. */
export async function ask(
  guest: Guest,
  target: { readonly netns?: string; readonly address: string; readonly port: number; readonly transport?: Transport },
): Promise<string> {
  const { netns, address, port, transport = "tcp" } = target;
  const words = ["python3", "-c", CLIENT, String(PROTOCOL[transport]), address, String(port), String(PATIENCE_SECONDS)];
  return (await guest.must(netns === undefined ? words : ["nsenter", `--net=/run/netns/${netns}`, ...words])).trim();
}

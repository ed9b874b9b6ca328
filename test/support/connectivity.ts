/** Tests connectivity with real packets. */
import type { Host } from "./host.ts";
import { pollUntil } from "./poll.ts";

/** Runs a command in a host or container; throws if it fails. */
export type Execute = (command: readonly string[]) => Promise<unknown>;

/** Pings until there is a reply: an IPv6 address may still be tentative. */
export async function pingEach(execute: Execute, addresses: readonly string[]): Promise<void> {
  for (const address of addresses) {
    const ping = ["/bin/busybox", address.includes(":") ? "ping6" : "ping", "-c", "1", "-W", "1", address];
    await pollUntil(async () => (await execute(ping)) !== undefined, `a reply from ${address}`);
  }
}

/**
 * Waits until packets that a host forwards can leave by this link: without a link-local address the kernel does not ask
 * for the MAC of an IPv6 neighbour. A link gets one when the kernel notices its carrier, on a busy machine a second after
 * the link was set up, and may use it when no other host is found to have it. `run` returns what the command printed.
 */
export async function untilLinkLocal(
  run: (command: readonly string[]) => Promise<string>,
  link: string,
): Promise<void> {
  const show = ["ip", "-6", "addr", "show", "dev", link, "scope", "link", "-tentative"];
  await pollUntil(async () => (await run(show)).includes("fe80:"), `the link-local address of ${link}`);
}

/** The body of an HTTP response, requested from the host until the server responds. */
export async function fetchFromHost(host: Host, address: string, port: number, path = "/"): Promise<string> {
  const request = ["busybox", "nc", "-w", "2", address, String(port)];
  let body = "";
  const answered = async () => {
    const answer = await host.must(request, { stdin: `GET ${path} HTTP/1.0\r\n\r\n` });
    body = answer.split("\r\n\r\n")[1] ?? "";
    return body !== "";
  };
  await pollUntil(answered, `an HTTP response from ${address}:${port}`);
  return body;
}

/** Hands a call over to the agent from the test itself, instead of a plugin's process. */
import { decodeFrame, joined } from "../../src/agent/calls/frame.ts";
import { encodeCall } from "../../src/agent/calls/handed-call.ts";
import type { Command, PluginSite, Pod } from "../support/plugin-site.ts";
import { SOCKET } from "./agent.ts";

/** The exit code that the agent sends for a call of the site's plugin. */
export async function handOver(site: PluginSite, command: Command, pod: Pod): Promise<number> {
  const environment = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: pod.containerId,
    CNI_NETNS: pod.netns,
    CNI_IFNAME: pod.ifname,
    CNI_PATH: "/usr/lib/cni",
  };
  const call = encodeCall({ program: "plugin", environment, stdin: Buffer.from(JSON.stringify(site.config())) });
  const exitCode = Promise.withResolvers<number>();
  let isGreeted = false;
  let received = new Uint8Array();
  await Bun.connect({
    unix: site.host.view(SOCKET),
    socket: {
      data(socket, bytes) {
        if (!isGreeted) {
          isGreeted = true;
          return void socket.write(call);
        }
        received = new Uint8Array(joined(received, new Uint8Array(bytes)));
        const reply = decodeFrame(received);
        if (reply !== undefined) exitCode.resolve(reply.number);
      },
      close: () => exitCode.reject(new Error("The agent closed the connection without a reply")),
    },
  });
  return exitCode.promise;
}

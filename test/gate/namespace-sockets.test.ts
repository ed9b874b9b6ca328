import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openUdpClient, serveUdp } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea } from "../support/netns.ts";

const area = new NetnsArea("socket");
const PORT = 5300;

describe.skipIf(!canMakeNetns)(`serveUdp()${canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)"}`, () => {
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());

  test.each(["127.0.0.1", "::1"])(
    "replies on %p although the previous client has closed its socket",
    async (target) => {
      const { path } = area.create();
      using _server = await serveUdp(path, "server", PORT);
      const any = target.includes(":") ? "::" : "0.0.0.0";
      const impatient = await openUdpClient(path, any);
      using patient = await openUdpClient(path, any);

      // The server reads both requests together, after this: its first reply reaches no socket, which the kernel reports.
      void impatient.ask(target, PORT);
      impatient[Symbol.dispose]();
      const reply = await patient.ask(target, PORT);

      expect(reply).toBe(`server ${target}`);
    },
  );
});

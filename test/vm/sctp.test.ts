/** Whole SCTP associations of the guest's own kernel: network policy by port, and a host port. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { resource } from "../routing/resource.ts";
import { hasEtcd } from "../support/etcd.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { type Guest, guestProblem, KERNELS, type Kernel, startGuest } from "./guest.ts";
import { type GuestNode, type GuestPod, NODE_ADDRESS, startGuestNode } from "./guest-node.ts";
import { ask, serve } from "./talk.ts";

const [ALLOWED, DENIED, HOST_PORT] = [8080, 8081, 9090];
const PATIENCE_MILLISECONDS = 240_000;
const TEST_MILLISECONDS = 900_000;

/** Nothing of it is in `make test`: it has SCTP packets, but no kernel that answers them. */
for (const kernel of proofSize<readonly Kernel[]>({ everyDay: [], soak: KERNELS })) {
  const needs = [await guestProblem(kernel), hasEtcd ? undefined : "needs etcd", program("python3")];
  const test = testNeeding(...needs);

  describe(`SCTP with ${kernel}`, () => {
    const undo = new AsyncDisposableStack();
    let guest: Guest;
    let node: GuestNode;
    let server: GuestPod;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      guest = undo.use(await startGuest({ kernel }));
      await guest.must(["modprobe", "sctp"]);
      node = await startGuestNode(guest);
      const portMappings = [{ hostPort: HOST_PORT, containerPort: ALLOWED, protocol: "sctp" }];
      server = await node.addPod("server", { portMappings });
      await node.addPod("client");
      for (const port of [ALLOWED, DENIED])
        await serve(guest, { netns: "server", name: "server", port, transport: "sctp" });
    }, TEST_MILLISECONDS);
    afterAll(() => undo.disposeAsync());

    const reply = (address: string, port: number) => ask(guest, { netns: "client", address, port, transport: "sctp" });

    test(
      "a host port leads to the pod",
      async () => {
        expect(await reply(NODE_ADDRESS, HOST_PORT)).toStartWith("server to ");
      },
      TEST_MILLISECONDS,
    );

    test(
      "a policy allows one port and denies the others, before and behind the host port",
      async () => {
        expect(await reply(server.address, DENIED)).toStartWith("server to ");
        const rule = { action: "Allow", protocol: "SCTP", destination: { ports: [ALLOWED] } };
        await node.label("server", "role=server");
        await node.apply(
          resource("GlobalNetworkPolicy", "sctp", {
            selector: "role == 'server'",
            types: ["Ingress"],
            ingress: [rule],
          }),
        );
        const isDenied = async () => (await reply(server.address, DENIED)).startsWith("nothing");
        await pollUntil(isDenied, "the policy to deny", PATIENCE_MILLISECONDS);
        expect(await reply(server.address, ALLOWED)).toStartWith("server to ");
        expect(await reply(NODE_ADDRESS, HOST_PORT)).toStartWith("server to ");
      },
      TEST_MILLISECONDS,
    );
  });
}

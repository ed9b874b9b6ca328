/**
 * Network policy and Services of IPVS, as kube-proxy sets them up in its mode of that name: the address of the Service is
 * on a dummy device, conntrack of IPVS is on, and packets are sent on by masquerading.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { resource } from "../routing/resource.ts";
import { hasEtcd } from "../support/etcd.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { type Guest, guestProblem, KERNELS, type Kernel, startGuest } from "./guest.ts";
import { type GuestNode, type GuestPod, startGuestNode } from "./guest-node.ts";
import { ask, serve } from "./talk.ts";

const SERVICE = "10.96.0.10";
const SERVICE_PORT = 80;
const HOST_PORT = 81;
const PATIENCE_MILLISECONDS = 240_000;
const TEST_MILLISECONDS = 900_000;

const TO_SERVER = { destination: { selector: "role == 'server'" } };
const policy = (name: string, role: string, rules: object) =>
  resource("GlobalNetworkPolicy", name, { selector: `role == '${role}'`, ...rules });

/** Nothing of it is in `make test`: one guest there is enough. */
for (const kernel of proofSize<readonly Kernel[]>({ everyDay: [], soak: KERNELS })) {
  const needs = [
    await guestProblem(kernel),
    hasEtcd ? undefined : "needs etcd",
    program("ipvsadm"),
    program("python3"),
  ];
  const test = testNeeding(...needs);

  describe(`Services of IPVS with ${kernel}`, () => {
    const undo = new AsyncDisposableStack();
    let guest: Guest;
    let node: GuestNode;
    const pods = new Map<string, GuestPod>();
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      guest = undo.use(await startGuest({ kernel }));
      node = await startGuestNode(guest);
      for (const name of ["client", "stranger", "server"]) {
        pods.set(name, await node.addPod(name));
        await node.label(name, `role=${name}`);
      }
      await serve(guest, { netns: "server", name: "server", port: 8080 });
      await serve(guest, { name: "host", port: HOST_PORT });
      await guest.must(["sh", "-ec", OUTSIDE]);
      await guest.must(["sh", "-ec", ipvsService(pods.get("server")?.address ?? "")]);
    }, TEST_MILLISECONDS);
    afterAll(() => undo.disposeAsync());

    /** Who asks: a pod, `outside`, or without a name this host. */
    const reached = async (name: string | undefined, port = SERVICE_PORT) => {
      const reply = await ask(guest, { ...(name === undefined ? {} : { netns: name }), address: SERVICE, port });
      return !reply.startsWith("nothing");
    };
    const until = (name: string, expected: boolean) =>
      pollUntil(
        async () => (await reached(name)) === expected,
        `${name} ${expected ? "to reach" : "not to reach"} the Service`,
        PATIENCE_MILLISECONDS,
      );

    test(
      "the ingress policy of a pod behind the Service judges who sends",
      async () => {
        for (const name of ["stranger", "outside"]) await until(name, true);
        await node.apply(
          policy("ingress", "server", {
            types: ["Ingress"],
            ingress: [{ action: "Allow", source: { selector: "role == 'client'" } }],
          }),
        );
        await until("stranger", false);
        expect([await reached("outside"), await reached("client")]).toEqual([false, true]);
        // A host may always reach its own pods.
        expect(await reached(undefined)).toBe(true);
        await node.admin("delete globalnetworkpolicy ingress");
        await until("stranger", true);
      },
      TEST_MILLISECONDS,
    );

    test(
      "an egress policy judges the pod behind the Service, not its virtual address",
      async () => {
        await node.apply(
          policy("deny", "stranger", {
            types: ["Egress"],
            egress: [{ action: "Deny", ...TO_SERVER }, { action: "Allow" }],
          }),
          policy("allow", "client", { types: ["Egress"], egress: [{ action: "Allow", ...TO_SERVER }] }),
        );
        await until("stranger", false);
        expect(await reached("client")).toBe(true);
        // What IPVS does not take at that address is the host's.
        expect(await reached("stranger", HOST_PORT)).toBe(true);
        expect(await reached("client", HOST_PORT)).toBe(false);
      },
      TEST_MILLISECONDS,
    );
  });
}

/** A client of another network, which this host forwards packets of. */
const OUTSIDE = `ip netns add outside
  ip link add to-outside type veth peer name eth0 netns outside
  ip address add 10.1.9.1/24 dev to-outside; ip link set to-outside up
  ip -n outside address add 10.1.9.2/24 dev eth0; ip -n outside link set eth0 up
  ip -n outside route add default via 10.1.9.1`;

function ipvsService(server: string): string {
  return `ip link add kube-ipvs0 type dummy
    ip address add ${SERVICE}/32 dev kube-ipvs0
    modprobe ip_vs
    echo 1 >/proc/sys/net/ipv4/vs/conntrack
    ipvsadm -A -t ${SERVICE}:${SERVICE_PORT} -s rr
    ipvsadm -a -t ${SERVICE}:${SERVICE_PORT} -r ${server}:8080 -m`;
}

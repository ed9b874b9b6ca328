/**
 * What agents say of their BGP sessions and tunnels, with the built agent, BIRD and a real API server: a session with a router
 * of somebody else is broken and mended, and `vendorctl status` and the Node say so.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { identity } from "../../src/identity.ts";
import { ROUTING_STATE_ANNOTATION } from "../../src/model/routing-state.ts";
import { hostProblem } from "../support/host.ts";
import { startHostDaemon } from "../support/host-daemon.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { FOREIGN_AS, type ForeignRouter, PASSWORD, startForeignRouter } from "./foreign-router.ts";
import { setMode } from "./modes.ts";
import { resource } from "./resource.ts";
import { gatewaysOf } from "./routed-network.ts";
import { openRoutedSite, type RoutedSite } from "./routed-site.ts";
import { type RouterApi, startRouterApi } from "./router-datastore.ts";

const needs = [hostProblem(), apiServerProblem(), program("bird"), program("birdc")];
const test = testNeeding(...needs);
setDefaultTimeout(600_000);
/** Until it lasts, and the pauses after former writes. */
const WRITTEN_MILLISECONDS = 200_000;
const PASSWORD_FILE = "/etc/bgp-password";
const BROKEN =
  /warning: node node-1: 1 of 8 BGP sessions is not established: (\S+) \(AS 65001, (.+)\) is \w+, down since ([^, ]+)/;

describe("what agents say of their routing", () => {
  let site: RoutedSite<RouterApi>;
  let router: ForeignRouter;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openRoutedSite({ startDatastore: startRouterApi });
    router = await startForeignRouter(site.network);
    for (const { name, host } of site.network.nodes) {
      host.writeFile(PASSWORD_FILE, `${PASSWORD}\n`);
      await ready(name);
    }
    await setMode(site, { vxlan: "Never", bgp: "Enabled" });
    await site.apply(
      ...gatewaysOf("west").map((peerIP, index) =>
        resource("BGPPeer", `router-${index}`, {
          ...{ nodeSelector: "subnet == 'west'", peerIP, asNumber: FOREIGN_AS },
          password: { file: PASSWORD_FILE },
        }),
      ),
    );
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  /** As a kubelet reports it. */
  const ready = async (name: string) => {
    const condition = {
      type: "Ready",
      status: "True",
      reason: "KubeletReady",
      message: "",
      lastHeartbeatTime: "2026-01-01T00:00:00Z",
    };
    const patch = JSON.stringify({ status: { conditions: [condition] } });
    await site.datastore.kubectl(["patch", "node", name, "--subresource=status", "--type=merge", `--patch=${patch}`]);
  };
  const status = async () => {
    const { network, datastore } = site;
    const command = [
      builtProgram(identity.adminTool),
      "status",
      "--kubeconfig",
      datastore.environment["KUBECONFIG"] ?? "",
    ];
    return (await network.router.run(command)).stdout;
  };
  const node = async (name: string) =>
    JSON.parse(await site.datastore.kubectl(["get", "node", name, "--output=json"])).metadata as {
      readonly resourceVersion: string;
      readonly annotations: Readonly<Record<string, string>>;
    };
  const shows = (wanted: RegExp) => async () => wanted.test(await status());

  test("a session that is broken and mended is in the status, and in its Node", async () => {
    const well = /^node-1 .* 8 of 8 sessions established$/m;
    await pollUntil(shows(well), "all sessions", WRITTEN_MILLISECONDS);
    const written = (await node("node-1")).annotations[ROUTING_STATE_ANNOTATION];

    await router.ask("disable node_1_4");
    await pollUntil(shows(BROKEN), "the broken session", WRITTEN_MILLISECONDS);
    const [, address, peer, since = ""] = BROKEN.exec(await status()) ?? [];
    expect([address, peer]).toEqual([gatewaysOf("west")[0], 'BGPPeer "router-0"']);
    expect(Math.abs(Date.now() - Date.parse(since))).toBeLessThan(WRITTEN_MILLISECONDS);
    expect(await status()).toMatch(/^node-1 .* 7 of 8 sessions established$/m);
    expect((await node("node-1")).annotations[ROUTING_STATE_ANNOTATION]).not.toBe(written);

    await router.ask("enable node_1_4");
    await pollUntil(shows(well), "the mended session", WRITTEN_MILLISECONDS);
    expect(await status()).not.toMatch(/node node-1: .*BGP/);
  });

  test("what somebody else wrote does not break the status, and the agent replaces it", async () => {
    const annotate = (text: string) =>
      site.datastore.kubectl(["annotate", "--overwrite", "node", "node-2", `${ROUTING_STATE_ANNOTATION}=${text}`]);
    await annotate("garbage");
    expect(await status()).toContain(`warning: node node-2: what the annotation "${ROUTING_STATE_ANNOTATION}"`);
    await pollUntil(shows(/^node-2 .* sessions established$/m), "the state of the agent", WRITTEN_MILLISECONDS);
  });

  test("leaving BGP clears it", async () => {
    await site.apply(resource("NodeAgentConfiguration", "default", { bgp: "Disabled" }));
    const isCleared = async () => (await node("node-1")).annotations[ROUTING_STATE_ANNOTATION] === undefined;
    await pollUntil(isCleared, "no annotation", WRITTEN_MILLISECONDS);
    await pollUntil(
      async () => !(await status()).includes("sessions established"),
      "no sessions",
      WRITTEN_MILLISECONDS,
    );
  });

  test("a tunnel that cannot be made is a problem of its node, until it can", async () => {
    const { host } = site.network.node("node-2");
    const listen = 'await Bun.udpSocket({ port: 4789, hostname: "0.0.0.0" })';
    const listener = startHostDaemon(host, "listener", [process.execPath, "-e", listen]);
    const hasPort = async () => (await host.must(["ss", "-Hlun"])).includes(":4789 ");
    await pollUntil(hasPort, "the port of VXLAN");
    await setMode(site, { vxlan: "Always", bgp: "Disabled" });

    const broken = /^failed: node node-2: Cannot set up the VXLAN tunnel that pool "ipv4" needs: /m;
    await pollUntil(shows(broken), "the problem", WRITTEN_MILLISECONDS);
    expect(await status()).not.toMatch(/^failed: node node-1:/m);
    await listener.kill();
    await pollUntil(async () => !broken.test(await status()), "the tunnel", WRITTEN_MILLISECONDS);
  });
});

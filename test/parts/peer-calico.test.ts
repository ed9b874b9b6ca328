/** The peer of the benchmarks works: the real Calico attaches and detaches one pod, with a real etcd and a real API server. */
import { describe, expect } from "bun:test";
import { preparePeer } from "../../bench/support/kube-candidates.ts";
import { peerProgram, preparePeerCalico } from "../../bench/support/peer-calico.ts";
import { callOf, podName } from "../../bench/support/plugin-candidate.ts";
import { startEtcdOnHost } from "../support/etcd-on-host.ts";
import { hostProblem, openHost } from "../support/host.ts";
import { apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { program, testNeeding } from "../support/needs.ts";
import { type Built, partIfBuilt } from "./build.ts";

const reasonOf = (built: Built) => ("missing" in built ? built.missing : undefined);
// Building it takes minutes: that is left to the benchmarks.
const testCalico = testNeeding(
  hostProblem(),
  program("etcd"),
  reasonOf(partIfBuilt("calico")),
  reasonOf(partIfBuilt("calicoctl")),
);

describe("preparePeerCalico()", () => {
  testCalico("prepares Calico to add and delete an attachment", async () => {
    await using host = await openHost();
    const etcdEndpoint = await startEtcdOnHost(host);
    const peer = await preparePeerCalico({ etcdEndpoint, cidr: "10.99.0.0/16", node: "here" }, host.must);
    if ("missing" in peer) throw new Error(peer.missing);
    await host.must(["ip", "netns", "add", "vt-pod"]);
    const call = (command: string) =>
      host.must([peerProgram(peer, "calico")], {
        stdin: peer.config,
        environment: peer.environment(command, { containerId: "pod", netns: "/run/netns/vt-pod" }),
      });

    const result = JSON.parse(await call("ADD"));
    expect(result.ips[0].address).toStartWith("10.99.");
    expect(await host.must(["ip", "-o", "link"])).toContain("cali");

    await call("DEL");
    expect(await host.must(["ip", "-o", "link"])).not.toContain("cali");
  });
});

describe("preparePeer()", () => {
  const problem = hostProblem() ?? apiServerProblem() ?? reasonOf(partIfBuilt("calico"));

  testNeeding(problem)("prepares Calico on an API server, under the role of its own manifest", async () => {
    await using host = await openHost();
    const server = await startApiServer({ place: { netns: host.netns, address: "127.0.0.1" } });
    try {
      const [peer] = await preparePeer(server, 1);
      if (peer === undefined) throw new Error("no peer");
      await host.must(["ip", "netns", "add", podName(0)]);
      const call = (command: "ADD" | "DEL") => {
        const { stdin = "", environment = {} } = callOf(peer, command, { round: 0 }, 0);
        return host.must([peer.program], { stdin, environment });
      };
      const audit = server.startAudit();

      expect(JSON.parse(await call("ADD")).ips[0].address).toStartWith("10.99.");
      expect(audit.counts(peer.user)).toMatchObject({ "create ipamhandles": 1, "patch pods/status": 1 });

      await call("DEL");
      expect(await host.must(["ip", "-o", "link"])).not.toContain("cali");
    } finally {
      await server.stop();
    }
  });
});

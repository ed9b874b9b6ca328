/** A container of podman in two networks is one container: the admin tool takes its name. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { type Host, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY, installNetwork } from "../support/network-under-test.ts";
import { type Podman, podmanProblem, usePodman } from "../support/podman.ts";
import { productNetwork } from "../support/product-network.ts";

const SERVE = ["/bin/httpd", "-f", "-p", "80", "-h", "/www"];
const network = await productNetwork("embedded");
const testPodman = testNeeding(podmanProblem());

describe("a container of podman in two networks", () => {
  let host: Host;
  let podman: Podman;
  let front = "";
  let back = "";

  beforeAll(async () => {
    if (podmanProblem() !== undefined) return;
    host = await openHost();
    await installNetwork(host, network);
    const second = JSON.stringify({ ...network.conflist("1.0.0"), name: "back" });
    host.writeFile("/etc/cni/net.d/20-back.conflist", second);
    podman = usePodman(host);
    await podman.run("two", `${network.name},back`, SERVE);
    await podman.run("single", "back", SERVE);
    [front = ""] = await podman.addressesOf("two", network.name);
    [back = ""] = await podman.addressesOf("two", "back");
  });
  afterAll(async () => {
    await host?.[Symbol.asyncDispose]();
  });

  const command = (words: string) => [join(BIN_DIRECTORY, identity.adminTool), ...words.split(" ")];
  const admin = (words: string) => host.must(command(words));

  testPodman("is shown with both endpoints", async () => {
    const { items } = JSON.parse(await admin("get container two -o json")) as {
      readonly items: readonly { readonly spec: { readonly ipNetworks: readonly string[] } }[];
    };
    expect(items.map(({ spec }) => spec.ipNetworks[0]).toSorted()).toEqual([`${front}/32`, `${back}/32`].toSorted());
    expect((await admin("describe container two")).match(/^Name: /gm)).toHaveLength(2);
    const { code, stderr } = await host.run(command("describe two"));
    expect([code, stderr]).toEqual([2, expect.stringContaining(`"${identity.adminTool} describe container two"`)]);
  });

  testPodman("is reached by its address in the network of the other end", async () => {
    const to = await admin("policy explain --from single --to two --port 80 --ip-version 4");
    expect(to.match(/^To: .*/gm)).toEqual([expect.stringContaining(`two (${back}, network back, `)]);
    const from = await admin("policy explain --from two --to single --port 80 --ip-version 4 -o json");
    const { packets } = JSON.parse(from) as { readonly packets: readonly { readonly from: { address: string } }[] };
    expect(packets.map((packet) => packet.from.address).toSorted()).toEqual([front, back].toSorted());
  });

  testPodman(
    "keeps its profiles: one that is in use is deleted only with --force, and then said to be missing",
    async () => {
      const refused = await host.run(command("delete profile back"));
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('container "two"')]);
      await admin("delete profile back --force");
      expect(await admin("describe container single")).toContain('profile "back" does not exist');
      expect((await host.run(command("status"))).stdout).toContain('profile "back" does not exist');
      await podman.stop("single");
      await podman.start("single");
      expect(await admin("describe container single")).not.toContain("does not exist");
      expect(JSON.parse(await admin("get profile back -o json"))).toMatchObject({ apiVersion: API_VERSION });
    },
  );
});
